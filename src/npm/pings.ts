// Asking whoever holds a lock whether it is still there.
//
// There is no heartbeat: a page in the background fires timers once a minute, but it answers messages. A page that is
// frozen may hear them, too, while nothing else in it moves; so it says nothing until it is thawed.

import { life } from "./life.js";

/** A holder that has not answered for so long may be robbed. */
const SILENCE_MS = 10_000;
/** How often it is asked, and how long it has for an answer at the least. */
const EVERY_MS = 1_000;
const ANSWER_MS = 2_000;

interface Asker {
  readonly name: string;
  readonly silent: () => void;
  heard: number;
  asked: number | undefined;
  /** What it wants to be the one with that robs the holder; of several, the lowest is. */
  claim: number | undefined;
}

type Message = { readonly ping: string } | { readonly pong: string } | { readonly claim: number; readonly of: string };

/** The holders and askers of this realm. The channel is open only while there are any: an idle page has none. */
export class Pings {
  readonly #held = new Map<string, number>();
  readonly #askers = new Set<Asker>();
  #channel: BroadcastChannel | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Answers for a name until that is taken back. */
  answer(name: string): () => void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    this.#open();
    // Others who wait begin to count anew: the holder is another one.
    this.#post({ pong: name });
    return () => {
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left > 0) this.#held.set(name, left);
      else this.#held.delete(name);
      this.#rest();
    };
  }

  /** Asks for a holder until that is taken back; `silent` is called once if there is no answer. */
  ask(name: string, silent: () => void): () => void {
    const asker: Asker = { name, silent, heard: Date.now(), asked: undefined, claim: undefined };
    this.#askers.add(asker);
    // Most waits are over before the first question.
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
      if (isSilent && asker.claim !== undefined) {
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

  /** Somebody else is about to rob the holder, too: one of them waits for the other. */
  #yield(asker: Asker, claim: number): void {
    if (asker.claim === undefined || claim < asker.claim) this.#hear(asker);
    else this.#post({ claim: asker.claim, of: asker.name });
  }

  #hear(asker: Asker): void {
    asker.heard = Date.now();
    asker.asked = undefined;
    asker.claim = undefined;
  }

  #open(): void {
    if (this.#channel !== undefined || typeof BroadcastChannel === "undefined") return;
    life.follow();
    this.#channel = new BroadcastChannel("lockgate.pings.1");
    (this.#channel as { unref?(): void }).unref?.();
    this.#channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      const { ping, pong, claim, of } = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
      if (typeof ping === "string" && this.#held.has(ping) && !life.isFrozen) this.#post({ pong: ping });
      for (const asker of this.#askers) {
        if (asker.name === pong) this.#hear(asker);
        if (asker.name === of && typeof claim === "number") this.#yield(asker, claim);
      }
    };
  }

  #post(message: Message): void {
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
