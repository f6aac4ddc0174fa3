// Events on their way to the clients that listen to sessions. All of them read the same list, each at its own place.

import type { AgentEvent, SessionEvent } from "../types.js";
import type { Shared } from "./held.js";

interface FeedEntry {
  readonly shared: Shared;
  /** The session of the event; absent for events of the user. */
  readonly sessionId: string | undefined;
}

/** One listener. */
export class FeedReader {
  /** The number of the next event in the list. */
  next: number;
  /** Whether events were dropped that the listener has not read. */
  isBehind = false;
  wake = (): void => {};

  constructor(
    readonly sessionId: string | undefined,
    next: number,
  ) {
    this.next = next;
  }

  /** Whether the listener gets this event. */
  hears({ sessionId }: FeedEntry): boolean {
    return this.sessionId === undefined || sessionId === undefined || this.sessionId === sessionId;
  }
}

/** The events that at least one listener has not read. */
export class Feed {
  readonly #release: (shared: Shared) => void;
  readonly #entries: (FeedEntry | undefined)[] = [];
  #start = 0;
  readonly #listeners = new Set<FeedReader>();

  constructor(release: (shared: Shared) => void) {
    this.#release = release;
  }

  /** Whether anybody listens. */
  get isRead(): boolean {
    return this.#listeners.size > 0;
  }

  /** Adds a listener to a session, or to all. */
  listen(sessionId: string | undefined): FeedReader {
    const listener = new FeedReader(sessionId, this.#start + this.#entries.length);
    this.#listeners.add(listener);
    return listener;
  }

  leave(listener: FeedReader): void {
    this.#listeners.delete(listener);
    this.#trim();
  }

  /** Adds an event. False if nobody hears it. */
  add(event: AgentEvent | SessionEvent, shared: Shared): boolean {
    const entry = { shared, sessionId: "slot" in event ? event.slot.sessionId : undefined };
    if (![...this.#listeners].some((listener) => listener.hears(entry))) return false;
    this.#entries.push(entry);
    return true;
  }

  /** Continues the listeners that wait. */
  wake(): void {
    for (const { wake } of [...this.#listeners]) wake();
  }

  /** The next event of a listener; undefined if there is none, or if events before it were dropped. */
  take(listener: FeedReader): Shared | undefined {
    while (!listener.isBehind && listener.next < this.#start + this.#entries.length) {
      const entry = this.#entries[listener.next - this.#start];
      listener.next += 1;
      if (entry === undefined || !listener.hears(entry)) continue;
      // The reader holds it from now on, before the list lets go of it.
      queueMicrotask(() => this.#trim());
      return entry.shared;
    }
    return undefined;
  }

  /** Drops the oldest event. Listeners that have not read it are behind. */
  shed(): boolean {
    if (this.#entries.length === 0) return false;
    const entry = this.#entries.shift();
    this.#start += 1;
    for (const listener of this.#listeners) {
      if (listener.next >= this.#start) continue;
      listener.next = this.#start;
      if (entry !== undefined && listener.hears(entry)) listener.isBehind = true;
    }
    if (entry !== undefined) this.#release(entry.shared);
    return true;
  }

  /** Drops the events of a deleted session; without one, those of all sessions. */
  forget(sessionId: string | undefined): void {
    for (const [index, entry] of this.#entries.entries()) {
      // The event that tells about the deletion belongs to no session.
      const isOf = entry?.shared.sessionId !== undefined && (sessionId === undefined || entry.shared.sessionId === sessionId);
      if (!isOf) continue;
      this.#entries[index] = undefined;
      this.#release(entry!.shared);
    }
  }

  /** Drops the events that every listener has read. */
  #trim(): void {
    const end = this.#start + this.#entries.length;
    const read = Math.min(end, ...[...this.#listeners].map(({ next }) => next));
    for (const entry of this.#entries.splice(0, read - this.#start)) if (entry !== undefined) this.#release(entry.shared);
    this.#start = Math.max(this.#start, read);
  }
}
