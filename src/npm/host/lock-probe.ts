// Asks the holder of a lock whether it still responds.
//
// There is no heartbeat, because a page in the background runs timers only once a minute. But it answers messages. A
// frozen page may also get messages, but it must not answer them, because its other code does not run.

import { life } from "../runtime/lifecycle.js";

/** The lock may be taken from a holder that has not answered for this long. */
const SILENCE_MS = 10_000;
/** How often the holder is asked, and how long it has at least for an answer. */
const EVERY_MS = 1_000;
const ANSWER_MS = 2_000;

interface Asker {
  readonly name: string;
  readonly silent: () => void;
  heard: number;
  asked: number | undefined;
  /** Set for a tab that does not want the lock: called when the holder answers. */
  readonly heardFrom?: () => void;
  /** A random number. If several tabs want to take the lock, the tab with the lowest number takes it. */
  claim: number | undefined;
}

type ProbeMessage = { readonly ping: string } | { readonly pong: string } | { readonly claim: number; readonly of: string };

/** A channel to the other tabs; undefined if the host has none, or denies it. */
export function channelOf(name: string): BroadcastChannel | undefined {
  try {
    return typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(name);
  } catch {
    return undefined;
  }
}

/** The holders and waiting tabs of this realm. The channel is open only while there are any. */
class Pings {
  readonly #held = new Map<string, number>();
  readonly #askers = new Set<Asker>();
  #channel: BroadcastChannel | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Answers questions about this name, until the returned function is called. */
  answer(name: string): () => void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    this.#open();
    // There is a new holder, so other waiting tabs start their time limit again.
    this.#post({ pong: name });
    return () => {
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left > 0) this.#held.set(name, left);
      else this.#held.delete(name);
      this.#rest();
    };
  }

  /** Asks the holder, until the returned function is called. `silent` is called once if there is no answer. */
  ask(name: string, silent: () => void): () => void {
    return this.#add({ name, silent, heard: Date.now(), asked: undefined, claim: undefined });
  }

  /** The same for a tab that does not want the lock. `since` is when the holder was last heard, `heard` is called at each answer. */
  listen(name: string, { since, silent, heard }: { readonly since: number; silent(): void; heard(): void }): () => void {
    return this.#add({ name, silent, heard: since, heardFrom: heard, asked: undefined, claim: undefined });
  }

  #add(asker: Asker): () => void {
    this.#askers.add(asker);
    // Most waits end before the first question.
    this.#timer ??= setInterval(() => this.#tick(), EVERY_MS);
    return () => {
      this.#askers.delete(asker);
      this.#rest();
    };
  }

  #tick(): void {
    const now = Date.now();
    this.#open();
    for (const asker of this.#askers) {
      if (this.#held.has(asker.name)) this.#hear(asker);
      const waited = asker.asked !== undefined && now - asker.asked >= ANSWER_MS;
      const isSilent = waited && now - asker.heard >= SILENCE_MS && this.#channel !== undefined;
      if (isSilent && (asker.claim !== undefined || asker.heardFrom !== undefined)) {
        this.#askers.delete(asker);
        asker.silent();
      } else if (isSilent) {
        asker.claim = Math.random();
        this.#post({ claim: asker.claim, of: asker.name });
      } else {
        asker.asked ??= now;
        this.#post({ ping: asker.name });
      }
    }
    this.#rest();
  }

  /** Another tab also wants to take the lock. The tab with the higher number waits. */
  #yield(asker: Asker, claim: number): void {
    if (asker.claim === undefined || claim < asker.claim) this.#hear(asker);
    else this.#post({ claim: asker.claim, of: asker.name });
  }

  #hear(asker: Asker): void {
    asker.heard = Date.now();
    asker.asked = undefined;
    asker.claim = undefined;
    asker.heardFrom?.();
  }

  #open(): void {
    if (this.#channel !== undefined) return;
    life.follow();
    this.#channel = channelOf("lockgate.pings.1");
    if (this.#channel === undefined) return;
    (this.#channel as { unref?(): void }).unref?.();
    this.#channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      const { ping, pong, claim, of } = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
      if (typeof ping === "string" && this.#held.has(ping) && !life.isFrozen) this.#post({ pong: ping });
      for (const asker of this.#askers) {
        if (asker.name === pong) this.#hear(asker);
        if (asker.name === of && typeof claim === "number" && asker.heardFrom === undefined) this.#yield(asker, claim);
      }
    };
  }

  #post(message: ProbeMessage): void {
    this.#channel?.postMessage(message);
  }

  #rest(): void {
    if (this.#askers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (this.#askers.size > 0 || this.#held.size > 0) return;
    this.#channel?.close();
    this.#channel = undefined;
  }
}

export const pings = new Pings();
