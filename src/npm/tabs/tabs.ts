// Messages between the tabs of one origin: the filters of listeners, events, and requests to stop a call.
//
// Messages may arrive late, twice or not at all. Nothing that is stored depends on them.

import { channelOf } from "../host/lock-probe.js";
import { announce, watch } from "./presence.js";
import { covers, isSessionFilter, isSlot } from "../session/listeners.js";
import type { FullSlot, SessionFilter } from "../session/listeners.js";
import type { AgentEvent } from "../types.js";

/** How this tab reacts to messages of other tabs. */
export interface TabHandlers {
  /** The filters of the listeners in this tab. */
  filters(): readonly SessionFilter[];
  /** Another tab has sent the filters of its listeners. */
  filtersChanged(): void;
  /** A call in the tab `from` has new events. */
  events(events: readonly AgentEvent[], slot: FullSlot, from: string): void;
  /** A session has changed. `hasBegun`: a call of it has begun. */
  changed(slot: FullSlot, hasBegun: boolean): void;
  userDeleted(userId: string | null): void;
  /** Stops the call that runs in this tab; false if none runs. */
  interrupt(slot: FullSlot, messages: readonly unknown[]): boolean;
}

/** The messages. Tabs with other versions of the package read them, so their members keep their names. */
type TabMessage =
  | { readonly type: "who" }
  | { readonly type: "listens"; readonly of: readonly SessionFilter[] }
  | { readonly type: "events"; readonly slot: FullSlot; readonly events: readonly AgentEvent[] }
  | { readonly type: "changed"; readonly slot: FullSlot; readonly hasBegun?: boolean }
  | { readonly type: "user-deleted"; readonly userId: string | null }
  | { readonly type: "interrupt"; readonly id: string; readonly slot: FullSlot; readonly says: readonly unknown[] }
  | { readonly type: "taken"; readonly id: string };

/** How long to wait until another tab confirms an interrupt. */
const CONFIRM_TIMEOUT_MS = 1_000;

/** The connection of one agent to the other tabs. The channel is open only while it is used: an idle page has none. */
export class Tabs {
  readonly #name: string;
  readonly #handlers: TabHandlers;
  readonly #elsewhere = new Map<string, readonly SessionFilter[]>();
  readonly #taken = new Map<string, () => void>();
  #channel: BroadcastChannel | undefined;
  #users = 0;
  #calls = 0;
  #own = "";
  #leave = (): void => {};

  /** The tabs that share a store; undefined if the host has no BroadcastChannel. */
  static of(store: string, agent: string, handlers: TabHandlers): Tabs | undefined {
    return typeof BroadcastChannel === "undefined" ? undefined : new Tabs(`lockgate.tabs.1/${store}/${agent}`, handlers);
  }

  private constructor(name: string, handlers: TabHandlers) {
    this.#name = name;
    this.#handlers = handlers;
  }

  /** Keeps the channel open until the returned function is called. */
  use(): () => void {
    this.#users += 1;
    this.#open();
    let used = true;
    return () => {
      if (used) this.#users -= 1;
      used = false;
      if (this.#users === 0) this.#close();
    };
  }

  /** The same while a call runs, so that other tabs notice if this tab is gone. */
  runCall(): () => void {
    const done = this.use();
    this.#calls += 1;
    if (this.#calls === 1) this.#leave = announce(presenceOf(this.#own));
    return () => {
      this.#calls -= 1;
      if (this.#calls === 0) this.#leave();
      done();
    };
  }

  /** Watches the tab that runs a call, until the returned function is called. */
  watch(from: string, heardAt: () => number, gone: () => void): () => void {
    return watch(presenceOf(from), heardAt, gone);
  }

  /** Whether a listener in another tab listens to this session. */
  hasListener(slot: FullSlot): boolean {
    for (const all of this.#elsewhere.values()) if (all.some((of) => covers(of, slot))) return true;
    return false;
  }

  /** Sends the filters of the listeners in this tab. */
  sendFilters(): void {
    this.#post({ type: "listens", of: this.#handlers.filters() });
  }

  /** Sends events of a call in this tab. */
  show(slot: FullSlot, events: readonly AgentEvent[]): void {
    if (events.length > 0) this.#post({ type: "events", slot, events });
  }

  /** Sends that a session has changed. */
  changed(slot: FullSlot, hasBegun: boolean): void {
    this.#post({ type: "changed", slot, hasBegun });
  }

  userDeleted(userId: string | null): void {
    this.#post({ type: "user-deleted", userId });
  }

  /** Asks the tab that runs the session's call to stop it. Returns whether a tab confirmed it. */
  interrupt(slot: FullSlot, messages: readonly unknown[]): Promise<boolean> {
    const id = token();
    const done = this.use();
    const { promise, resolve } = answer();
    const timer = setTimeout(() => resolve(false), CONFIRM_TIMEOUT_MS);
    this.#taken.set(id, () => resolve(true));
    this.#post({ type: "interrupt", id, slot, says: messages });
    return promise.finally(() => {
      clearTimeout(timer);
      this.#taken.delete(id);
      done();
    });
  }

  #open(): void {
    if (this.#channel !== undefined) return;
    this.#own = token();
    const channel = channelOf(this.#name);
    if (channel === undefined) return;
    (channel as { unref?(): void }).unref?.();
    channel.onmessage = ({ data }: MessageEvent<unknown>) => this.#receive(data);
    this.#channel = channel;
    this.#post({ type: "who" });
  }

  #close(): void {
    if (this.#channel === undefined) return;
    this.#post({ type: "listens", of: [] });
    this.#channel.close();
    this.#channel = undefined;
    this.#elsewhere.clear();
  }

  /** Sends a message, through a channel of its own if none is open. */
  #post(message: TabMessage): void {
    const channel = this.#channel ?? channelOf(this.#name);
    if (channel === undefined) return;
    try {
      channel.postMessage({ ...message, from: this.#own });
    } catch {
      // A value that cannot be cloned cannot be sent to other tabs.
    }
    if (channel !== this.#channel) channel.close();
  }

  /** Handles a message. Anything that does not look like a message is ignored. */
  #receive(data: unknown): void {
    if (typeof data !== "object" || data === null || !("type" in data) || !("from" in data)) return;
    try {
      this.#take(data as TabMessage & { readonly from: string });
    } catch {
      // Sent by another version of the package, or by another program.
    }
  }

  #take(message: TabMessage & { readonly from: string }): void {
    const handlers = this.#handlers;
    switch (message.type) {
      case "who":
        if (handlers.filters().length > 0) this.sendFilters();
        return;
      case "listens":
        if (message.of.length === 0) this.#elsewhere.delete(message.from);
        else if (message.of.every(isSessionFilter)) this.#elsewhere.set(message.from, message.of);
        return handlers.filtersChanged();
      case "events":
        return isSlot(message.slot) ? handlers.events(message.events, message.slot, message.from) : undefined;
      case "changed":
        return isSlot(message.slot) ? handlers.changed(message.slot, message.hasBegun === true) : undefined;
      case "user-deleted":
        return handlers.userDeleted(message.userId);
      case "interrupt":
        if (isSlot(message.slot) && handlers.interrupt(message.slot, message.says)) this.#post({ type: "taken", id: message.id });
        return;
      case "taken":
        this.#taken.get(message.id)?.();
    }
  }
}

/** The name by which a tab is watched. */
function presenceOf(tab: string): string {
  return `lockgate.tab.1/${tab}`;
}

function token(): string {
  return crypto.getRandomValues(new Uint32Array(2)).join(".");
}

function answer(): { readonly promise: Promise<boolean>; resolve(value: boolean): void } {
  let resolve = (_: boolean): void => {};
  const promise = new Promise<boolean>((settle) => (resolve = settle));
  return { promise, resolve };
}
