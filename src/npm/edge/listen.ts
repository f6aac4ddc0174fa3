// The route that sends events of sessions as they happen.

import { type Frame, bodyOf } from "../protocol/sse.js";
import type { Agent, AgentEvent, SessionEvent } from "../types.js";
import { cutOffError } from "./calls.js";
import type { Asked } from "./routes.js";
import type { Noted } from "./turns.js";

/** The most events that wait for a client. A client further behind is disconnected, and may reconnect. */
const MOST_BEHIND = 10_000;

/** Many proxies close a connection after about 30 s without data. */
const HEARTBEAT_MS = 15_000;

/** The events of one session, or of all sessions of the user. Calls that a restart cut off come first, with their end. */
export async function listen(agent: Agent, { slot, args, turns }: Asked): Promise<Response> {
  const { sessionId } = args;
  const of = slot.userId === null ? slot : typeof sessionId === "string" ? { userId: slot.userId, sessionId } : { userId: slot.userId };
  const cut = await turns.cutOff("sessionId" in of ? of.sessionId : undefined);
  const waiting: Frame[] = (await endsOf(agent, slot.userId, cut)).map((event) => ({ data: JSON.stringify(event) }));
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

/** The events that end calls which a restart cut off. The number of the last event is lost, so `seq` is 0. */
async function endsOf(agent: Agent, userId: string | null, cut: readonly Noted[]): Promise<readonly (AgentEvent | SessionEvent)[]> {
  const ends: (AgentEvent | SessionEvent)[] = [];
  for (const noted of cut) {
    const slot = { userId, sessionId: noted.sessionId };
    const info = await agent.session(slot);
    const { code, message, hint, retryable } = cutOffError(noted, slot);
    const at = new Date().toISOString();
    ends.push({ type: "error", error: { code, message, hint: hint ?? "", retryable }, slot, callId: noted.callId, seq: 0, at });
    if (info !== null) ends.push({ type: "session-changed", slot, info, at });
  }
  return ends;
}

/** Sends something at once, so that the client knows that the subscription has started. */
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
