// `subscribe`, `attach` and `interrupt` across tabs: delivers events to listeners here and in other tabs.

import type { CallHandle } from "../call/call.js";
import { LockgateError } from "../errors.js";
import { EventReplay, AttachedCall } from "../call/attached.js";
import { webLocks } from "../host/locks.js";
import { Tabs } from "./tabs.js";
import type { AgentEvent, Call, Input, SessionInfo, Slot } from "../types.js";
import { Listeners, covers } from "../session/listeners.js";
import type { FullSlot, Listener, SessionFilter } from "../session/listeners.js";

/** What `Subscriptions` needs from its agent. */
export interface SubscriptionSource {
  /** The name of the store that the tabs share; undefined if no other tabs can share it. */
  readonly shared: string | undefined;
  readonly name: string;
  calls(): Iterable<CallHandle>;
  info(slot: FullSlot): Promise<SessionInfo | null>;
  /** Stops the call that runs in this tab; false if none runs. */
  interrupt(slot: FullSlot, messages: readonly unknown[]): boolean;
  lockName(slot: FullSlot): string;
}

/** How long to wait for the first event of a call in another tab. */
const EVENT_TIMEOUT_MS = 1_000;

/** A call of another tab whose end has not arrived. */
interface FollowedCall {
  readonly slot: FullSlot;
  /** The number of its next event. */
  next: number;
  /** When its last event arrived, in ms. */
  heardAt: number;
  /** Stops watching its tab. */
  stopWatching(): void;
}

/** A reader that is attached to a call of another tab. */
interface AttachedReader {
  readonly slot: FullSlot;
  take(event: AgentEvent): void;
  /** The tab of this call is gone. */
  lose(callId: string, error: LockgateError): void;
}

/** The listeners of one agent in this tab, and the connection to other tabs. */
export class Subscriptions {
  readonly #source: SubscriptionSource;
  readonly #listeners = new Listeners();
  readonly #tabs: Tabs | undefined;
  /** How many events of each call were delivered: in this tab, and to other tabs. */
  readonly #delivered = new WeakMap<CallHandle, { here: number; elsewhere: number }>();
  /** The calls of other tabs, by id. */
  readonly #followed = new Map<string, FollowedCall>();
  #notifying: Promise<void> = Promise.resolve();
  readonly #attached = new Set<AttachedReader>();

  constructor(source: SubscriptionSource) {
    this.#source = source;
    const tabs = {
      filters: () => [...this.#listeners.all(), ...[...this.#attached].map(({ slot }) => slot)],
      filtersChanged: () => this.#deliverAll(),
      events: (events: readonly AgentEvent[], slot: FullSlot, from: string) => events.forEach((event) => this.#receive(event, slot, from)),
      changed: (slot: FullSlot, hasBegun: boolean) => void this.#notifyChanged(slot, hasBegun),
      userDeleted: (userId: string | null) => void this.#notifyDeleted(userId),
      interrupt: (slot: FullSlot, messages: readonly unknown[]) => source.interrupt(slot, messages),
    };
    if (source.shared !== undefined) this.#tabs = Tabs.of(source.shared, source.name, tabs);
  }

  /** Whether a listener in any tab listens to this session. */
  hasListener(slot: FullSlot): boolean {
    return this.#listeners.hasListener(slot) || this.#tabs?.hasListener(slot) === true;
  }

  subscribe(of: SessionFilter, listener: Listener): () => void {
    const remove = this.#listeners.add(of, listener);
    const done = this.#tabs?.use();
    this.#tabs?.sendFilters();
    for (const call of this.#source.calls()) {
      if (covers(of, full(call.slot))) call.watch();
    }
    return () => {
      remove();
      this.#forgetUnheard();
      this.#tabs?.sendFilters();
      done?.();
    };
  }

  /** Connects to other tabs while a call runs, because they may want its events or stop it. Call the returned function when the call has ended. */
  begin(): () => void {
    return this.#tabs?.runCall() ?? (() => {});
  }

  /** Delivers the new events of a call. */
  show(call: CallHandle): void {
    const slot = full(call.slot);
    if (!this.hasListener(slot)) return;
    const delivered = this.#delivered.get(call) ?? { here: 0, elsewhere: 0 };
    this.#delivered.set(call, delivered);
    if (this.#listeners.hasListener(slot)) {
      const events = call.since(delivered.here);
      for (const event of events) this.#listeners.notify(event, slot);
      delivered.here = call.length;
      if (events.some(isBeginning)) void this.#notifyChanged(slot, true);
    }
    if (this.#tabs?.hasListener(slot) === true) {
      call.watch();
      const events = call.since(delivered.elsewhere);
      this.#tabs.show(slot, events);
      delivered.elsewhere = call.length;
      if (events.some(isBeginning)) this.#tabs.changed(slot, true);
    }
  }

  /** Reports that a session has changed in this tab. Returns a promise only if this tab has listeners. `done` runs after they were called. */
  changed(slot: FullSlot, done = (): void => {}): Promise<void> | undefined {
    this.#tabs?.changed(slot, false);
    if (this.#listeners.hasListener(slot)) return this.#notifyChanged(slot, false).finally(done);
    done();
    return undefined;
  }

  /** Reports that all data of a user was deleted. */
  async userDeleted(userId: string | null): Promise<void> {
    this.#tabs?.userDeleted(userId);
    await this.#notifyDeleted(userId);
  }


  /** Stops a call of another tab. Returns whether a tab confirmed it. */
  async interrupt(slot: FullSlot, messages: readonly unknown[]): Promise<boolean> {
    if (this.#tabs === undefined || !(await this.#runsElsewhere(slot))) return false;
    return this.#tabs.interrupt(slot, messages);
  }

  /** The running call of a session, from the event with the number `from`; null if none runs. */
  async attach(slot: Slot, from: number): Promise<Call | null> {
    const whole = full(slot);
    for (const call of this.#source.calls()) {
      if (isSame(full(call.slot), whole)) return call.follow(from);
    }
    return this.#tabs !== undefined && (await this.#runsElsewhere(whole)) ? this.#attachToTab(slot, from, this.#tabs) : null;
  }

  /** Rebuilds a call of another tab from its events. */
  async #attachToTab(slot: Slot, from: number, tabs: Tabs): Promise<Call | null> {
    const whole = full(slot);
    const call = new EventReplay();
    const over = new AbortController();
    const done = tabs.use();
    let id: string | undefined;
    const begun = new Promise<void>((resolve) => {
      const reader: AttachedReader = {
        slot: whole,
        take: (event) => {
          id ??= event.callId;
          if (event.callId === id) call.take(event);
          resolve();
        },
        lose: (callId, error) => callId === id && call.fail(error),
      };
      this.#attached.add(reader);
      over.signal.addEventListener("abort", () => {
        this.#attached.delete(reader);
        this.#forgetUnheard();
        tabs.sendFilters();
        done();
      });
      setTimeout(resolve, EVENT_TIMEOUT_MS);
    });
    tabs.sendFilters();
    await begun;
    const onLeave = (): void => over.abort();
    if (id === undefined) {
      onLeave();
      return null;
    }
    call.result.then(onLeave, onLeave);
    const stop = (message?: Input): void => {
      const messages = message === undefined ? [] : Array.isArray(message) ? message : [message];
      void tabs.interrupt(whole, messages);
    };
    return new AttachedCall({ id, slot, feed: call.feed, result: call.result, from, stop, onLeave });
  }

  async #runsElsewhere(slot: FullSlot): Promise<boolean> {
    const locks = webLocks();
    // Without Web Locks this is unknown, so the other tabs are asked in any case.
    if (locks === undefined) return true;
    const name = this.#source.lockName(slot);
    const { held = [] } = await locks.query().catch((): LockManagerSnapshot => ({ held: [] }));
    return held.some((lock) => lock.name === name);
  }

  #deliverAll(): void {
    for (const call of this.#source.calls()) {
      const slot = full(call.slot);
      if (this.#tabs?.hasListener(slot) !== true) continue;
      // A new listener needs all events. Listeners that have had some of them ignore those by their numbers.
      const delivered = this.#delivered.get(call);
      if (delivered !== undefined) delivered.elsewhere = 0;
      this.show(call);
    }
  }

  #receive(event: AgentEvent, slot: FullSlot, from: string): void {
    if (!this.#isHeard(slot)) return;
    for (const reader of this.#attached) if (isSame(reader.slot, slot)) reader.take(event);
    const call = this.#followed.get(event.callId) ?? { slot, next: 0, heardAt: 0, stopWatching: () => {} };
    call.heardAt = Date.now();
    if (event.seq < call.next) return;
    call.next = event.seq + 1;
    if (event.type === "call-end" || event.type === "error") {
      this.#forget(event.callId);
    } else if (!this.#followed.has(event.callId) && this.#tabs !== undefined) {
      this.#followed.set(event.callId, call);
      call.stopWatching = this.#tabs.watch(from, () => call.heardAt, () => this.#lose(event.callId));
    }
    this.#listeners.notify(event, slot);
  }

  /** Ends a call whose tab is gone, for its listeners here. */
  #lose(callId: string): void {
    const call = this.#followed.get(callId);
    if (call === undefined) return;
    this.#forget(callId);
    const { slot, next: seq } = call;
    const gone = tabGone(slot, callId);
    for (const reader of this.#attached) reader.lose(callId, gone);
    const { code, message, hint, retryable } = gone;
    const error = { code, message, retryable, ...(hint === undefined ? {} : { hint }) };
    this.#listeners.notify({ type: "error", error, slot, callId, seq, at: new Date().toISOString() }, slot);
    void this.#notifyChanged(slot, false);
  }

  #forget(callId: string): void {
    this.#followed.get(callId)?.stopWatching();
    this.#followed.delete(callId);
  }

  /** Stops following calls that nobody here listens to any more. */
  #forgetUnheard(): void {
    for (const [callId, { slot }] of this.#followed) {
      if (!this.#isHeard(slot)) this.#forget(callId);
    }
  }

  /** Whether this tab wants the events of a session. */
  #isHeard(slot: FullSlot): boolean {
    return this.#listeners.hasListener(slot) || [...this.#attached].some((reader) => isSame(reader.slot, slot));
  }

  /** Tells the listeners what a session is like now. When a call has begun, it is shown as running even if it has ended meanwhile: another event follows then. */
  async #notifyChanged(slot: FullSlot, hasBegun: boolean): Promise<void> {
    if (!this.#listeners.hasListener(slot)) return;
    await this.#inTurn(async () => {
      const info = await this.#source.info(slot);
      const at = new Date().toISOString();
      if (info === null) return hasBegun ? undefined : this.#listeners.notify({ type: "session-deleted", slot, at }, slot);
      const shown = hasBegun ? { ...info, running: true, interrupted: false } : info;
      this.#listeners.notify({ type: "session-changed", slot, info: shown, at }, slot);
    });
  }

  #notifyDeleted(userId: string | null): Promise<void> {
    return this.#inTurn(async () => {
      this.#listeners.notify({ type: "user-deleted", userId, at: new Date().toISOString() }, { userId });
    });
  }

  /** Keeps notifications in order, although some of them have to read the session first. */
  #inTurn(notify: () => Promise<void>): Promise<void> {
    this.#notifying = this.#notifying.then(notify).catch(() => {});
    return this.#notifying;
  }
}

/** The slot with `null` for a missing user. */
export function full(slot: { readonly sessionId: string; readonly userId?: string | null }): FullSlot {
  return { sessionId: slot.sessionId, userId: slot.userId ?? null };
}

/** Whether the event says that a call has begun: from then on the store has its input. */
function isBeginning({ type }: AgentEvent): boolean {
  return type === "accepted";
}

function tabGone(slot: FullSlot, callId: string): LockgateError {
  const hint = "accepted inputs are stored: history shows them, and resume goes on with an interrupted turn";
  return new LockgateError("SUPERSEDED", "the tab that ran this call is gone", { hint, slot, callId });
}

function isSame(one: FullSlot, other: FullSlot): boolean {
  return one.sessionId === other.sessionId && one.userId === other.userId;
}
