// The messages that JavaScript has of a conversation: parsed once, and extended by what is new.

import { deepFrozen } from "./frozen.js";
import type { Msg } from "./types.js";

/** As many conversations as an agent keeps in memory by default. */
const MOST = 1_000;

interface Mirror {
  readonly messages: Msg[];
  /** How long their JSON was. */
  length: number;
}

/**
 * Conversations as models written in JavaScript see them, at most so many characters of JSON; the least recently used goes
 * first. A conversation that is read from the store again is another one here, and what was known of it before is of no use.
 */
export class Mirrors {
  readonly #lineages = new Map<number, Mirror>();
  readonly #most: number;
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** How many messages are here, none of them at or after `unchanged`. */
  known(lineage: number, unchanged: number): number {
    const messages = this.#lineages.get(lineage)?.messages;
    if (messages === undefined) return 0;
    if (messages.length > unchanged) messages.length = unchanged;
    return messages.length;
  }

  /** The whole conversation after what is added to it, as a frozen list that later calls do not change; its messages are shared, and frozen too. */
  extend(lineage: number, added: string): readonly Msg[] {
    const mirror = this.#lineages.get(lineage) ?? { messages: [], length: 0 };
    // One by one: a history may be longer than the arguments a function takes.
    for (const message of JSON.parse(added) as Msg[]) mirror.messages.push(deepFrozen(message));
    mirror.length += added.length;
    this.#length += added.length;
    this.#lineages.delete(lineage);
    for (const [oldest, { length }] of this.#lineages) {
      if (this.#length <= this.#most && this.#lineages.size < MOST) break;
      this.#lineages.delete(oldest);
      this.#length -= length;
    }
    this.#lineages.set(lineage, mirror);
    return Object.freeze(mirror.messages.slice());
  }
}
