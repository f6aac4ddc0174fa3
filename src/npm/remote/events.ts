// Events of the sessions of a remote agent, for `subscribe`.

import { LockgateError } from "../errors.js";
import { pause } from "./call.js";
import { missedIn } from "../protocol/wire.js";
import type { Wire } from "./requests.js";
import { framesOf } from "../protocol/sse-read.js";
import type { AgentEvent, SessionEvent, Slot } from "../types.js";
import { checkSessionFilter } from "../session/listeners.js";
import type { Listener, SessionFilter } from "../session/listeners.js";

type Heard = AgentEvent | SessionEvent;

/** The longest wait before a reconnect. */
const PATIENCE_MS = 10_000;

/** A call whose end has not arrived. */
interface OpenCall {
  readonly slot: Slot;
  /** The number of its next event. */
  next: number;
  /** Whether its events are read from its own route, because some were missed. */
  isRead: boolean;
}

/** The subscriptions of one remote agent. */
export class RemoteEvents {
  readonly #wire: Wire;
  readonly #open = new Set<AbortController>();

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Calls the listener until the returned function is called. After a broken connection it reconnects. The rest of open calls is delivered then; other events in between are lost. */
  subscribe(of: SessionFilter, listener: Listener): () => void {
    const over = new AbortController();
    this.#open.add(over);
    void new Subscription(this.#wire, checkSessionFilter(of, listener), listener, over.signal).run();
    return () => {
      over.abort();
      this.#open.delete(over);
    };
  }

  /** Ends all subscriptions. */
  close(): void {
    for (const over of this.#open) over.abort();
    this.#open.clear();
  }
}

/** One listener, and the calls that it follows. */
class Subscription {
  readonly #wire: Wire;
  readonly #of: SessionFilter;
  readonly #listener: Listener;
  readonly #signal: AbortSignal;
  readonly #calls = new Map<string, OpenCall>();

  constructor(wire: Wire, of: SessionFilter, listener: Listener, signal: AbortSignal) {
    this.#wire = wire;
    this.#of = of;
    this.#listener = listener;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const [of, signal] = [this.#of, this.#signal];
    const sessionId = typeof of === "object" && "sessionId" in of ? of.sessionId : undefined;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        const { body } = await this.#wire.send({ name: "subscribe", args: { sessionId }, accept: "text/event-stream", signal });
        for (const [callId, call] of this.#calls) void this.#readRest(callId, call);
        for await (const { data } of framesOf(body!)) {
          attempt = 0;
          this.#hear(this.#own(JSON.parse(data) as Heard));
        }
      } catch (error) {
        // An error that is not retryable would come again.
        if (LockgateError.isInstance(error) && !error.retryable) return;
      }
      await pause(Math.min(100 * 2 ** attempt, PATIENCE_MS), signal);
    }
  }

  /** Takes an event of the subscription. */
  #hear(event: Heard | { readonly type: "cut-off" }): void {
    // The worker closes the connection after it: what was missed is read after the reconnect.
    if (event.type === "cut-off") return;
    if (!("callId" in event)) return this.#tell(event);
    const call = this.#calls.get(event.callId);
    // The end of a call that a restart cut off. Its events are read from its own route.
    const isCutOff = event.type === "error" && event.error.code === "SUPERSEDED" && event.seq === 0;
    if (!isCutOff && call?.isRead !== true) this.#take(event);
  }

  /** Delivers the next event of a call; an earlier one was delivered before. */
  #take(event: AgentEvent): void {
    const call = this.#calls.get(event.callId) ?? { slot: event.slot, next: 0, isRead: false };
    if (event.seq < call.next) return;
    call.next = event.seq + 1;
    if (event.type === "call-end" || event.type === "error") this.#calls.delete(event.callId);
    else this.#calls.set(event.callId, call);
    this.#tell(event);
  }

  /** Reads what was missed of a call and what comes, to its end. */
  async #readRest(callId: string, call: OpenCall): Promise<void> {
    if (call.isRead) return;
    call.isRead = true;
    const { slot } = call;
    try {
      const response = await this.#wire.send({ name: "attach", slot, args: { callId, after: call.next - 1 }, accept: "text/event-stream", signal: this.#signal });
      if (response.status === 204) throw forgotten(slot, callId);
      for await (const { data } of framesOf(response.body!)) this.#take(this.#own(JSON.parse(data) as AgentEvent));
    } catch (error) {
      const { next } = missedIn(error);
      if (next !== undefined && next > call.next) {
        call.next = next;
        call.isRead = false;
        return this.#readRest(callId, call);
      }
      if (LockgateError.isInstance(error) && error.code === "SUPERSEDED") await this.#lose(callId, call, error);
    } finally {
      call.isRead = false;
    }
  }

  /** Ends a call that a restart cut off, or that ended long ago. */
  async #lose(callId: string, { slot, next }: OpenCall, { code, message, hint, retryable }: LockgateError): Promise<void> {
    const at = new Date().toISOString();
    this.#take({ type: "error", error: { code, message, retryable, ...(hint === undefined ? {} : { hint }) }, slot, callId, seq: next, at });
    const info = await this.#wire.ask("session", [slot]).catch(() => undefined);
    if (info === undefined) return;
    this.#tell(info === null ? { type: "session-deleted", slot, at } : { type: "session-changed", slot, info, at });
  }

  /** The event with the userId by which the listener asked. The worker's own userId is not shown; for "everyone" it is null. */
  #own<E extends Heard>(event: E): E {
    if (!("slot" in event)) return event;
    const userId = this.#of === "everyone" ? null : (this.#of.userId ?? null);
    return { ...event, slot: { ...event.slot, userId } };
  }

  /** Calls the listener. An error of the listener is thrown outside, so that it does not end the subscription. */
  #tell(event: Heard): void {
    if (this.#signal.aborted) return;
    try {
      this.#listener(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

function forgotten(slot: Slot, callId: string): LockgateError {
  return new LockgateError("SUPERSEDED", "the call has ended, and its events are not kept any more", { hint: "read the session's history", slot, callId });
}
