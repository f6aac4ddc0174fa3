// What the tabs of one origin tell each other: who listens, what happens, and that a call is to stop.
//
// All of it is a courtesy. What a tab says may come late, twice or not at all, and nothing that is stored depends on it.

import { concerns, isOf, isSlot } from "./watch.js";
import type { FullSlot, Of } from "./watch.js";
import type { AgentEvent } from "./types.js";

/** What this tab does for the others. */
export interface Here {
  /** What is listened to here. */
  listens(): readonly Of[];
  /** Somebody elsewhere has begun to listen. */
  wanted(): void;
  /** Something has happened elsewhere. */
  heard(events: readonly AgentEvent[], slot: FullSlot): void;
  changed(slot: FullSlot): void;
  userDeleted(userId: string | null): void;
  /** Stops the call that runs here; whether there is one. */
  interrupt(slot: FullSlot, says: readonly unknown[]): boolean;
}

type Message =
  | { readonly type: "who" }
  | { readonly type: "listens"; readonly of: readonly Of[] }
  | { readonly type: "events"; readonly slot: FullSlot; readonly events: readonly AgentEvent[] }
  | { readonly type: "changed"; readonly slot: FullSlot }
  | { readonly type: "user-deleted"; readonly userId: string | null }
  | { readonly type: "interrupt"; readonly id: string; readonly slot: FullSlot; readonly says: readonly unknown[] }
  | { readonly type: "taken"; readonly id: string };

/** How long another tab has to say that it took an interrupt. */
const TAKEN_MS = 1_000;

/** The other tabs, as one agent sees them. The channel is open only while it is used: an idle page has none. */
export class Tabs {
  readonly #name: string;
  readonly #here: Here;
  readonly #elsewhere = new Map<string, readonly Of[]>();
  readonly #taken = new Map<string, () => void>();
  #channel: BroadcastChannel | undefined;
  #users = 0;
  #own = "";

  /** The tabs that share a store; `undefined` where tabs cannot speak to each other. */
  static of(store: string, agent: string, here: Here): Tabs | undefined {
    return typeof BroadcastChannel === "undefined" ? undefined : new Tabs(`lockgate.tabs.1/${store}/${agent}`, here);
  }

  private constructor(name: string, here: Here) {
    this.#name = name;
    this.#here = here;
  }

  /** Keeps the channel open until that is taken back. */
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

  /** Whether anybody elsewhere listens to this session. */
  concern(slot: FullSlot): boolean {
    for (const all of this.#elsewhere.values()) if (all.some((of) => concerns(of, slot))) return true;
    return false;
  }

  /** Says what is listened to here. */
  listen(): void {
    this.#post({ type: "listens", of: this.#here.listens() });
  }

  /** Shows what happens here. */
  show(slot: FullSlot, events: readonly AgentEvent[]): void {
    if (events.length > 0) this.#post({ type: "events", slot, events });
  }

  /** Says that a session has changed. */
  changed(slot: FullSlot): void {
    this.#post({ type: "changed", slot });
  }

  userDeleted(userId: string | null): void {
    this.#post({ type: "user-deleted", userId });
  }

  /** Asks whoever runs the session's call to stop it; whether somebody took it. */
  interrupt(slot: FullSlot, says: readonly unknown[]): Promise<boolean> {
    const id = token();
    const done = this.use();
    const { promise, resolve } = answer();
    const timer = setTimeout(() => resolve(false), TAKEN_MS);
    this.#taken.set(id, () => resolve(true));
    this.#post({ type: "interrupt", id, slot, says });
    return promise.finally(() => {
      clearTimeout(timer);
      this.#taken.delete(id);
      done();
    });
  }

  #open(): void {
    if (this.#channel !== undefined) return;
    this.#own = token();
    const channel = new BroadcastChannel(this.#name);
    (channel as { unref?(): void }).unref?.();
    channel.onmessage = ({ data }: MessageEvent<unknown>) => this.#hear(data);
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

  /** Says something, also while nobody here listens. */
  #post(message: Message): void {
    const channel = this.#channel ?? new BroadcastChannel(this.#name);
    try {
      channel.postMessage({ ...message, from: this.#own });
    } catch {
      // A value that cannot be copied is not for other tabs.
    }
    if (channel !== this.#channel) channel.close();
  }

  /** Whatever comes is only a hint; what does not have the form of one is none. */
  #hear(data: unknown): void {
    if (typeof data !== "object" || data === null || !("type" in data) || !("from" in data)) return;
    try {
      this.#take(data as Message & { readonly from: string });
    } catch {
      // Written by another version, or by somebody else.
    }
  }

  #take(message: Message & { readonly from: string }): void {
    const here = this.#here;
    switch (message.type) {
      case "who":
        if (here.listens().length > 0) this.listen();
        return;
      case "listens":
        if (message.of.length === 0) this.#elsewhere.delete(message.from);
        else if (message.of.every(isOf)) this.#elsewhere.set(message.from, message.of);
        return here.wanted();
      case "events":
        return isSlot(message.slot) ? here.heard(message.events, message.slot) : undefined;
      case "changed":
        return isSlot(message.slot) ? here.changed(message.slot) : undefined;
      case "user-deleted":
        return here.userDeleted(message.userId);
      case "interrupt":
        if (isSlot(message.slot) && here.interrupt(message.slot, message.says)) this.#post({ type: "taken", id: message.id });
        return;
      case "taken":
        this.#taken.get(message.id)?.();
    }
  }
}

function token(): string {
  return crypto.getRandomValues(new Uint32Array(2)).join(".");
}

function answer(): { readonly promise: Promise<boolean>; resolve(value: boolean): void } {
  let resolve = (_: boolean): void => {};
  const promise = new Promise<boolean>((settle) => (resolve = settle));
  return { promise, resolve };
}
