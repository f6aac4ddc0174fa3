// The events of sessions as they happen, for a client that listens.

import { type Frame, bodyOf } from "../sse.js";
import type { Agent } from "../types.js";
import type { Asked } from "./routes.js";

/** Whoever is further behind than this has gone to sleep, and may come again. */
const MOST_BEHIND = 10_000;

/** Proxies close connections on which nothing happens for half a minute or so. */
const HEARTBEAT_MS = 15_000;

/** Events of one session, or of all that the user has. */
export function listen(agent: Agent, { slot, args }: Asked): Response {
  const { sessionId } = args;
  const of = slot.userId === null ? slot : typeof sessionId === "string" ? { userId: slot.userId, sessionId } : { userId: slot.userId };
  const waiting: Frame[] = [];
  let wake = (): void => {};
  let over = false;
  const end = (): void => {
    over = true;
    leave();
    wake();
  };
  const leave = agent.subscribe(of, (event) => {
    waiting.push({ data: JSON.stringify(event) });
    if (waiting.length > MOST_BEHIND) end();
    wake();
  });
  const frames: AsyncIterator<readonly Frame[], undefined> = {
    async next() {
      while (waiting.length === 0 && !over) await new Promise<void>((resolve) => (wake = resolve));
      return over ? { done: true, value: undefined } : { done: false, value: waiting.splice(0) };
    },
    async return() {
      end();
      return { done: true, value: undefined };
    },
  };
  return new Response(bodyOf(begunWith(frames), HEARTBEAT_MS), { headers: { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" } });
}

/** Something comes at once, so that a client knows that it is listened to. */
function begunWith(frames: AsyncIterator<readonly Frame[], undefined>): AsyncIterator<readonly Frame[], undefined> {
  let first = true;
  return {
    async next() {
      if (!first) return frames.next();
      first = false;
      return { done: false, value: [] };
    },
    return: async () => frames.return!(),
  };
}
