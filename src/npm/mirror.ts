// The messages that JavaScript has of a conversation: parsed once, and extended by what is new.

import { deepFrozen } from "./frozen.js";
import type { Msg } from "./types.js";

/** As many conversations as an agent keeps in memory by default; the least recently used goes first. */
const MOST = 1_000;

/** Conversations as models written in JavaScript see them. */
export class Mirrors {
  readonly #lineages = new Map<number, Msg[]>();

  /** How many messages are here, none of them at or after `unchanged`. */
  known(lineage: number, unchanged: number): number {
    const messages = this.#lineages.get(lineage);
    if (messages === undefined) return 0;
    if (messages.length > unchanged) messages.length = unchanged;
    return messages.length;
  }

  /** The whole conversation after `added`, as a frozen list that later calls do not change; its messages are shared, and frozen too. */
  extend(lineage: number, added: readonly Msg[]): readonly Msg[] {
    const messages = this.#lineages.get(lineage) ?? [];
    // One by one: a history may be longer than the arguments a function takes.
    for (const message of added) messages.push(deepFrozen(message));
    this.#lineages.delete(lineage);
    this.#lineages.set(lineage, messages);
    if (this.#lineages.size > MOST) this.#lineages.delete(this.#lineages.keys().next().value!);
    return Object.freeze(messages.slice());
  }
}
