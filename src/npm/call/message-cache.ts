// Parsed messages of conversations. Each message is parsed once; later requests add only new messages.

import { deepFrozen } from "../values/frozen.js";
import type { Msg } from "../types.js";

/** The number of conversations that an agent keeps in memory by default. */
const MAX_CONVERSATIONS = 1_000;

interface CachedConversation {
  readonly messages: Msg[];
  /** The length of their JSON. */
  length: number;
}

/**
 * Conversations as models written in JavaScript see them, up to `maxChars` characters of JSON. The least recently used
 * conversation is removed first. Rust gives a conversation a new `lineage` when it reads it from the store again.
 */
export class MessageCache {
  readonly #lineages = new Map<number, CachedConversation>();
  readonly #maxChars: number;
  #length = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** The number of cached messages, after dropping the ones from `unchanged` on. */
  known(lineage: number, unchanged: number): number {
    const messages = this.#lineages.get(lineage)?.messages;
    if (messages === undefined) return 0;
    if (messages.length > unchanged) messages.length = unchanged;
    return messages.length;
  }

  /** Adds messages, given as JSON, and returns the whole conversation: a frozen list of its own with shared, frozen messages. */
  extend(lineage: number, added: string): readonly Msg[] {
    const conversation = this.#lineages.get(lineage) ?? { messages: [], length: 0 };
    // One by one: a history may have more messages than a function can have arguments.
    for (const message of JSON.parse(added) as Msg[]) conversation.messages.push(deepFrozen(message));
    conversation.length += added.length;
    this.#length += added.length;
    this.#lineages.delete(lineage);
    for (const [oldest, { length }] of this.#lineages) {
      if (this.#length <= this.#maxChars && this.#lineages.size < MAX_CONVERSATIONS) break;
      this.#lineages.delete(oldest);
      this.#length -= length;
    }
    this.#lineages.set(lineage, conversation);
    return Object.freeze(conversation.messages.slice());
  }
}
