// What happens in the sessions of a remote agent, for those who listen.

import { LockgateError } from "./errors.js";
import { pause } from "./remote-call.js";
import type { Wire } from "./remote-wire.js";
import { framesOf } from "./sse-read.js";
import type { AgentEvent, SessionEvent } from "./types.js";
import { checkOf } from "./watch.js";
import type { Listener, Of } from "./watch.js";

type Heard = AgentEvent | SessionEvent;

/** How long a listener waits before it tries again, at most. */
const PATIENCE_MS = 10_000;

export class RemoteEvents {
  readonly #wire: Wire;
  readonly #open = new Set<AbortController>();

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Listens until it is told not to; a connection that breaks is made anew, and what happened meanwhile is not told. */
  subscribe(of: Of, listener: Listener): () => void {
    const over = new AbortController();
    this.#open.add(over);
    void this.#listen(checkOf(of, listener), listener, over.signal);
    return () => {
      over.abort();
      this.#open.delete(over);
    };
  }

  close(): void {
    for (const over of this.#open) over.abort();
    this.#open.clear();
  }

  async #listen(of: Of, listener: Listener, signal: AbortSignal): Promise<void> {
    const next = new Map<string, number>();
    const sessionId = typeof of === "object" && "sessionId" in of ? of.sessionId : undefined;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        const { body } = await this.#wire.send({ name: "subscribe", args: { sessionId }, accept: "text/event-stream", signal });
        for await (const { data } of framesOf(body!)) {
          attempt = 0;
          const event = own(JSON.parse(data) as Heard, of);
          if (!signal.aborted && isNew(event, next)) tell(listener, event);
        }
      } catch (error) {
        // One that is refused for good is refused again.
        if (LockgateError.isInstance(error) && !error.retryable) return;
      }
      await pause(Math.min(100 * 2 ** attempt, PATIENCE_MS), signal);
    }
  }
}

/** The user's name is the worker's affair: here it is what the listener calls it, and nobody in particular for one who asks about everyone. */
function own(event: Heard, of: Of): Heard {
  if (!("slot" in event)) return event;
  const userId = of === "everyone" ? null : (of.userId ?? null);
  return { ...event, slot: { ...event.slot, userId } } as Heard;
}

/** Whether an event of a call was not told before. */
function isNew(event: Heard, next: Map<string, number>): boolean {
  if (!("callId" in event)) return true;
  if (event.seq < (next.get(event.callId) ?? 0)) return false;
  if (event.type === "call-end" || event.type === "error") next.delete(event.callId);
  else next.set(event.callId, event.seq + 1);
  return true;
}

/** What a listener throws is its own to see. */
function tell(listener: Listener, event: Heard): void {
  try {
    listener(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
