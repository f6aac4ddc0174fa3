// What an object holds in memory for its clients, bounded in bytes: the events of calls, and what slow readers have not read yet.

import { LockgateError } from "../errors.js";
import type { AgentEvent, SessionEvent } from "../types.js";

/** The default of `maxHeldBytes`. */
export const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** What an event costs besides its bytes. */
const EVENT_BYTES = 256;

/** What an unfinished request costs besides its body, and an open stream besides what it has to send. */
const REQUEST_BYTES = 16 * 1024;

/** After this time without a read, a reader loses what it has not read before calls that run lose their first events. */
const STALLED_MS = 1_000;

const encoder = new TextEncoder();

/** Bytes that several holders share. They count once, until the last holder lets go. */
export class Shared {
  /** How many hold it. */
  holders = 0;

  constructor(
    /** The type of the event; "" for bytes that are not an event. */
    readonly type: string,
    readonly bytes: Uint8Array,
    /** The session that the bytes are about. They go when it is deleted. Absent for bytes that stay. */
    readonly sessionId?: string | undefined,
  ) {}
}

/** An event as the frame that every reader gets. */
export function sharedEvent(event: AgentEvent | SessionEvent): Shared {
  const isNews = event.type === "session-deleted" || !("slot" in event);
  return new Shared(event.type, frame(event), isNews ? undefined : event.slot.sessionId);
}

/** A value as a frame of a stream of server-sent events. */
export function frame(value: unknown): Uint8Array {
  return encoder.encode(`data: ${JSON.stringify(value)}\n\n`);
}

/** The event in a frame. */
export function eventIn({ bytes }: Shared): AgentEvent {
  return JSON.parse(new TextDecoder().decode(bytes).slice("data: ".length)) as AgentEvent;
}

/** Something that can let go of bytes when there are too many. */
export interface Holder {
  /** Lets go of the oldest bytes. Returns false if there are none. */
  shed(): boolean;
}

/** A response whose reader has not read all of it. */
export interface HeldResponse {
  /** When the reader got its last bytes, in ms; undefined while it waits for more. */
  readonly stalledSince: number | undefined;
  /** Whether it keeps bytes alive: any, or those of a session. */
  holds(sessionId?: string): boolean;
  /** Ends the response where it is. */
  cut(): void;
}

/** The budget of one object. */
export class HeldBytes {
  /** The most bytes. */
  max = MAX_HELD_BYTES;
  /** The bytes of events and responses. */
  #bytes = 0;
  /** The bytes of unfinished requests. */
  #asked = 0;
  readonly #responses = new Set<HeldResponse>();

  /** `finished`, `waiting` and `running` shed in this order: calls that have ended, events for slow readers, and events of calls that run. */
  constructor(readonly holders: { readonly finished: Holder; readonly waiting: Holder; readonly running: Holder }) {}

  /** The bytes that are held now. */
  get bytes(): number {
    return this.#bytes + this.#responses.size * REQUEST_BYTES;
  }

  /** One more holder of these bytes. */
  hold(shared: Shared): void {
    if (shared.holders++ === 0) this.#bytes += shared.bytes.length + EVENT_BYTES;
  }

  /** One holder less. */
  release(shared: Shared): void {
    if (--shared.holders === 0) this.#bytes -= shared.bytes.length + EVENT_BYTES;
  }

  /** Makes everything fit. */
  fit(): void {
    const { finished, waiting, running } = this.holders;
    while (this.bytes > this.max) {
      if (finished.shed() || waiting.shed() || this.#cutStalled(STALLED_MS) || running.shed() || this.#cutStalled(0)) continue;
      return;
    }
  }

  /** Adds a response. Refuses it with BUSY if `n_bytes` more do not fit beside the responses that others have not read. */
  open(response: HeldResponse, n_bytes: number): void {
    const fits = (): boolean => this.bytes + n_bytes + REQUEST_BYTES <= this.max;
    const { finished, waiting } = this.holders;
    while (!fits() && this.#responses.size > 0 && (finished.shed() || waiting.shed() || this.#cutStalled(STALLED_MS)));
    // A single response may be larger than the budget.
    if (!fits() && this.#responses.size > 0) throw busy("clients have not read earlier answers", "read the open responses, or close them");
    this.#responses.add(response);
  }

  /** Removes a response. */
  close(response: HeldResponse): void {
    this.#responses.delete(response);
  }

  /** Ends the responses that are sending something about a session; without one, something about any session. */
  forget(sessionId: string | undefined): void {
    for (const response of [...this.#responses]) if (response.holds(sessionId)) response.cut();
  }

  /** Takes a request of this size until the returned function is called. Refuses it with BUSY if it does not fit beside the unfinished ones. */
  admit(n_bytes: number): () => void {
    const n = n_bytes + REQUEST_BYTES;
    if (this.#asked > 0 && this.#asked + n > this.max) throw busy("unfinished requests are too large together", "wait until some of them are answered");
    this.#asked += n;
    let isOpen = true;
    return () => {
      if (isOpen) this.#asked -= n;
      isOpen = false;
    };
  }

  /** Cuts off the response that has not been read for longest, if it was not read for `ms`. */
  #cutStalled(ms: number): boolean {
    let oldest: HeldResponse | undefined;
    for (const response of this.#responses) {
      const { stalledSince } = response;
      if (response.holds() && stalledSince !== undefined && stalledSince < (oldest?.stalledSince ?? Infinity)) oldest = response;
    }
    if (oldest === undefined || Date.now() - oldest.stalledSince! < ms) return false;
    oldest.cut();
    return true;
  }
}

/** The unfinished bodies that a worker has received, by the object that they are for. */
export class Inbox {
  readonly #bytes = new Map<string, number>();

  /** A place for one more body. Refused with BUSY if the bodies of this object are too large together; one alone is never refused. */
  enter(object: string | undefined, max: number): { take(n_bytes: number): void; leave(): void } {
    if (object === undefined) return { take: () => {}, leave: () => {} };
    let own = 0;
    const take = (n_bytes: number): void => {
      const all = this.#bytes.get(object) ?? 0;
      if (all > own && all + n_bytes > max) throw busy("unfinished requests are too large together", "wait until some of them are answered");
      own += n_bytes;
      this.#bytes.set(object, all + n_bytes);
    };
    const leave = (): void => {
      const rest = (this.#bytes.get(object) ?? 0) - own;
      if (rest > 0) this.#bytes.set(object, rest);
      else this.#bytes.delete(object);
    };
    take(REQUEST_BYTES);
    return { take, leave };
  }
}

function busy(why: string, hint: string): LockgateError {
  return new LockgateError("BUSY", `this user's object holds too much: ${why}`, { hint });
}
