// Who watches an agent's sessions, here and in other tabs: what they are shown, and what they may ask for.

import type { CallHandle } from "./call.js";
import { LockgateError } from "./errors.js";
import { Elsewhere, Followed } from "./followed.js";
import { webLocks } from "./locks.js";
import { Tabs } from "./tabs.js";
import type { AgentEvent, Call, Input, SessionEvent, SessionInfo, Slot } from "./types.js";
import { Watchers, concerns } from "./watch.js";
import type { FullSlot, Listener, Of } from "./watch.js";

/** What an audience needs of its agent. */
export interface Stage {
  /** What tabs that share the store know it by; undefined where there are no others. */
  readonly shared: string | undefined;
  readonly name: string;
  calls(): Iterable<CallHandle>;
  info(slot: FullSlot): Promise<SessionInfo | null>;
  /** Stops the call that runs here. */
  interrupt(slot: FullSlot, says: readonly unknown[]): boolean;
  lockName(slot: FullSlot): string;
}

/** How long another tab has to show the call that it runs. */
const SHOWN_MS = 1_000;

/** Those who watch. */
export class Audience {
  readonly #stage: Stage;
  readonly #watchers = new Watchers();
  readonly #tabs: Tabs | undefined;
  /** How many events of each call were shown: here, and elsewhere. */
  readonly #shown = new WeakMap<CallHandle, { here: number; elsewhere: number }>();
  /** The next event of each call of another tab. */
  readonly #heard = new Map<string, number>();
  #telling: Promise<void> = Promise.resolve();
  readonly #followed = new Map<(event: AgentEvent) => void, FullSlot>();

  constructor(stage: Stage) {
    this.#stage = stage;
    const tabs = {
      listens: () => [...this.#watchers.all(), ...this.#followed.values()],
      wanted: () => this.#showAll(),
      heard: (events: readonly AgentEvent[], slot: FullSlot) => events.forEach((event) => this.#hear(event, slot)),
      changed: (slot: FullSlot) => void this.#tellChanged(slot),
      userDeleted: (userId: string | null) => void this.#tellDeleted(userId),
      interrupt: (slot: FullSlot, says: readonly unknown[]) => stage.interrupt(slot, says),
    };
    if (stage.shared !== undefined) this.#tabs = Tabs.of(stage.shared, stage.name, tabs);
  }

  /** Whether anybody watches this session. */
  watches(slot: FullSlot): boolean {
    return this.#watchers.concern(slot) || this.#tabs?.concern(slot) === true;
  }

  subscribe(of: Of, listener: Listener): () => void {
    const forget = this.#watchers.add(of, listener);
    const done = this.#tabs?.use();
    this.#tabs?.listen();
    for (const call of this.#stage.calls()) {
      if (concerns(of, full(call.slot))) call.watch();
    }
    return () => {
      forget();
      this.#tabs?.listen();
      done?.();
    };
  }

  /** A call begins: other tabs may want to see it, or stop it. The answer is for its end. */
  begin(): () => void {
    return this.#tabs?.use() ?? (() => {});
  }

  /** Shows what a call has shown since. */
  show(call: CallHandle): void {
    const slot = full(call.slot);
    if (!this.watches(slot)) return;
    const shown = this.#shown.get(call) ?? { here: 0, elsewhere: 0 };
    this.#shown.set(call, shown);
    if (this.#watchers.concern(slot)) {
      for (const event of call.since(shown.here)) this.#watchers.tell(event, slot);
      shown.here = call.length;
    }
    if (this.#tabs?.concern(slot) === true) {
      call.watch();
      this.#tabs.show(slot, call.since(shown.elsewhere));
      shown.elsewhere = call.length;
    }
  }

  /** A session has changed here; there is a promise only if somebody here is told. `done` is called then, or at once. */
  changed(slot: FullSlot, done = (): void => {}): Promise<void> | undefined {
    this.#tabs?.changed(slot);
    if (this.#watchers.concern(slot)) return this.#tellChanged(slot).finally(done);
    done();
    return undefined;
  }

  /** All that a user had is gone. */
  async userDeleted(userId: string | null): Promise<void> {
    this.#tabs?.userDeleted(userId);
    await this.#tellDeleted(userId);
  }

  /** Tells everybody here what the store is like. */
  tell(event: SessionEvent): void {
    this.#watchers.tellAll(event);
  }

  /** Stops a call of another tab; whether somebody took it. */
  async interrupt(slot: FullSlot, says: readonly unknown[]): Promise<boolean> {
    if (this.#tabs === undefined || !(await this.#runsElsewhere(slot))) return false;
    return this.#tabs.interrupt(slot, says);
  }

  /** The call that runs now, from an event on; null if none runs. */
  async attach(slot: Slot, from: number): Promise<Call | null> {
    const whole = full(slot);
    for (const call of this.#stage.calls()) {
      if (isSame(full(call.slot), whole)) return call.follow(from);
    }
    return this.#tabs !== undefined && (await this.#runsElsewhere(whole)) ? this.#follow(slot, from, this.#tabs) : null;
  }

  /** Says of sessions whether another tab has a call on them. */
  async marked(infos: readonly SessionInfo[]): Promise<SessionInfo[]> {
    const held = this.#tabs === undefined ? [] : ((await webLocks()?.query())?.held ?? []);
    if (held.length === 0) return [...infos];
    const names = new Set(held.map(({ name }) => name));
    return infos.map((info) => (info.running || !names.has(this.#stage.lockName(info)) ? info : { ...info, running: true }));
  }

  /** Puts together what another tab shows of its call. */
  async #follow(slot: Slot, from: number, tabs: Tabs): Promise<Call | null> {
    const whole = full(slot);
    const call = new Elsewhere();
    const over = new AbortController();
    const done = tabs.use();
    let id: string | undefined;
    const begun = new Promise<void>((resolve) => {
      const take = (event: AgentEvent): void => {
        id ??= event.callId;
        if (event.callId === id) call.take(event);
        resolve();
      };
      this.#followed.set(take, whole);
      over.signal.addEventListener("abort", () => {
        this.#followed.delete(take);
        tabs.listen();
        done();
      });
      setTimeout(resolve, SHOWN_MS);
    });
    tabs.listen();
    await begun;
    const left = (): void => over.abort();
    if (id === undefined) {
      left();
      return null;
    }
    call.result.then(left, left);
    void this.#failIfGone(call, whole, over.signal);
    const stop = (message?: Input): void => {
      const says = message === undefined ? [] : Array.isArray(message) ? message : [message];
      void tabs.interrupt(whole, says);
    };
    return new Followed({ id, slot, feed: call.feed, result: call.result, from, stop, left });
  }

  /** When the session's lock is free and the end of the call was not shown, its tab is gone. */
  async #failIfGone(call: Elsewhere, slot: FullSlot, signal: AbortSignal): Promise<void> {
    const free = webLocks()?.request(this.#stage.lockName(slot), { signal }, () => {});
    if (free === undefined) return;
    const isFree = await free.then(() => true, () => false);
    if (!isFree) return;
    await new Promise<void>((resolve) => setTimeout(resolve, SHOWN_MS));
    const hint = "what was accepted is stored; the session's next call finds it";
    call.fail(new LockgateError("SUPERSEDED", "the tab that ran this call is gone", { hint, slot }));
  }

  async #runsElsewhere(slot: FullSlot): Promise<boolean> {
    const locks = webLocks();
    // Without locks nobody knows: whoever is asked will answer, or not.
    if (locks === undefined) return true;
    const name = this.#stage.lockName(slot);
    return ((await locks.query()).held ?? []).some((lock) => lock.name === name);
  }

  #showAll(): void {
    for (const call of this.#stage.calls()) {
      const slot = full(call.slot);
      if (this.#tabs?.concern(slot) !== true) continue;
      // Whoever has begun to listen wants all of it; the others know what they have had.
      const shown = this.#shown.get(call);
      if (shown !== undefined) shown.elsewhere = 0;
      this.show(call);
    }
  }

  #hear(event: AgentEvent, slot: FullSlot): void {
    for (const [take, of] of this.#followed) if (isSame(of, slot)) take(event);
    const next = this.#heard.get(event.callId) ?? 0;
    if (event.seq < next) return;
    if (event.type === "call-end" || event.type === "error") this.#heard.delete(event.callId);
    else this.#heard.set(event.callId, event.seq + 1);
    this.#watchers.tell(event, slot);
  }

  async #tellChanged(slot: FullSlot): Promise<void> {
    if (!this.#watchers.concern(slot)) return;
    await this.#inTurn(async () => {
      const info = await this.#stage.info(slot);
      const at = new Date().toISOString();
      const event: SessionEvent = info === null ? { type: "session-deleted", slot, at } : { type: "session-changed", slot, info, at };
      this.#watchers.tell(event, slot);
    });
  }

  #tellDeleted(userId: string | null): Promise<void> {
    return this.#inTurn(async () => {
      this.#watchers.tell({ type: "user-deleted", userId, at: new Date().toISOString() }, { userId });
    });
  }

  /** News are told in the order in which they happened, however long it takes to read what they are about. */
  #inTurn(tell: () => Promise<void>): Promise<void> {
    this.#telling = this.#telling.then(tell).catch(() => {});
    return this.#telling;
  }
}

/** A slot with nothing left out. */
export function full(slot: { readonly sessionId: string; readonly userId?: string | null }): FullSlot {
  return { sessionId: slot.sessionId, userId: slot.userId ?? null };
}

function isSame(one: FullSlot, other: FullSlot): boolean {
  return one.sessionId === other.sessionId && one.userId === other.userId;
}
