// The events of one call, for clients that reconnect, and what a client gets when its events are gone.

import type { CallHandle } from "../call/call.js";
import { LockgateError, fromCore } from "../errors.js";
import type { AgentEvent, Reply, Slot } from "../types.js";
import { type HeldBytes, type Shared, eventIn, sharedEvent } from "./held.js";

/** One call of an object. Its events are kept while there is room for them. */
export class HeldCall {
  readonly id: string;
  readonly slot: Slot;
  readonly #held: HeldBytes;
  readonly #events: Shared[] = [];
  /** The number of the first event that is kept. */
  #start = 0;
  #bytes = 0;
  /** Set while the call runs. */
  #handle: CallHandle | undefined;
  readonly #wakes = new Set<() => void>();
  readonly #waiting = new Set<() => void>();
  /** The type of the first event after `call-start`. */
  #second: string | undefined;
  #isAccepted = false;
  /** Whether the session is deleted: the events that still come are not kept. */
  #isDeleted = false;

  constructor(held: HeldBytes, handle: CallHandle) {
    this.id = handle.id;
    this.slot = handle.slot;
    this.#held = held;
    this.#handle = handle;
    for (const event of handle.since(0)) this.take(event);
  }

  /** The number of the first event that is kept. */
  get start(): number {
    return this.#start;
  }

  /** The number of events so far. */
  get length(): number {
    return this.#start + this.#events.length;
  }

  /** The bytes of its events. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the call runs or waits. */
  get isRunning(): boolean {
    return this.#handle !== undefined;
  }

  /** Whether the call did something itself. A call with a repeated callId gets the stored outcome. */
  get isAccepted(): boolean {
    return this.#isAccepted;
  }

  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  /** Takes the next event; an earlier one was taken before. */
  take(event: AgentEvent, shared = sharedEvent(event)): void {
    if (event.seq < this.length) return;
    this.#events.push(shared);
    this.#held.hold(shared);
    this.#bytes += shared.bytes.length;
    // The call need not keep what is kept here.
    this.#handle?.forget(event.seq + 1);
    if (event.type !== "call-start") this.#second ??= event.type;
    if (event.type === "accepted") this.#isAccepted = true;
    if (this.#second !== undefined) this.#wakeAll(this.#waiting);
    this.#wakeAll(this.#wakes);
    if (this.#isDeleted) this.shed();
  }

  /** Notes that the call has ended. */
  end(): void {
    this.#handle = undefined;
    this.#wakeAll(this.#waiting);
    this.#wakeAll(this.#wakes);
  }

  /** Drops the first event that is kept. False if there is none. */
  shed(): boolean {
    const first = this.#events.shift();
    if (first === undefined) return false;
    this.#start += 1;
    this.#bytes -= first.bytes.length;
    this.#held.release(first);
    return true;
  }

  /** Drops all events. */
  drop(): void {
    while (this.shed());
  }

  /** Drops all events, and those that still come. */
  delete(): void {
    this.#isDeleted = true;
    this.drop();
  }

  /** The event with this number, if it is kept. */
  at(seq: number): Shared | undefined {
    return this.#events[seq - this.#start];
  }

  /** The kept events of these types. */
  eventsOf(...types: readonly string[]): AgentEvent[] {
    return this.#events.filter(({ type }) => types.includes(type)).map(eventIn);
  }

  /** Resolves when the call is queued or accepted. Rejects if it is refused before that. */
  async begun(): Promise<void> {
    while (this.#second === undefined && this.isRunning) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    if (this.#second === undefined || this.#second === "error") await this.result();
  }

  /** The reply of the call, when it has ended. SUPERSEDED if it is not kept any more. */
  async result(): Promise<Reply> {
    const handle = this.#handle;
    if (handle !== undefined) return handle.result;
    const [end] = this.eventsOf("call-end", "error");
    if (end?.type === "call-end") return end.reply;
    if (end?.type === "error") throw fromCore(end.error, { slot: this.slot, callId: this.id, partial: end.error.partial });
    throw forgottenError(this.id, this.slot);
  }

  /** Stops the call, if it runs. */
  stop(message?: Parameters<CallHandle["stop"]>[0]): boolean {
    this.#handle?.stop(message);
    return this.isRunning;
  }

  /** Calls `wake` when there is something new. The returned function ends that. */
  onNews(wake: () => void): () => void {
    this.#wakes.add(wake);
    return () => void this.#wakes.delete(wake);
  }

  #wakeAll(wakes: Set<() => void>): void {
    for (const wake of [...wakes]) wake();
    if (wakes === this.#waiting) wakes.clear();
  }
}

/** The error for events that are not kept any more. */
export function forgottenError(callId: string, slot: Slot): LockgateError {
  const hint = "the turn is stored: fetch the history of the session";
  return new LockgateError("SUPERSEDED", "these events of the call are not kept any more", { hint, callId, slot });
}
