// What is stored of a session: the newest page of its log, older ones as they are asked for, and its end read again.
import type { Agent, Msg, Slot } from "lockgate";
import { turnsOf } from "./turn.ts";
import type { Turn } from "./turn.ts";

const pageSize = 1000;
/** Read again after every call: enough for what a call adds. */
const tailSize = 100;

export class Past {
  hasOlder = false;
  #agent: Agent;
  #slot: Slot;
  #messages: readonly Msg[] = [];
  #turns: readonly Turn[] | null = null;
  #paging: Promise<boolean> | null = null;

  constructor(agent: Agent, slot: Slot) {
    this.#agent = agent;
    this.#slot = slot;
  }

  /** Null until it was read. */
  get turns(): readonly Turn[] | null {
    return this.#turns;
  }

  async read(): Promise<void> {
    const messages = await this.#agent.history(this.#slot, { limit: pageSize });
    this.#take(messages, messages.length === pageSize);
  }

  /** Reads the end again; what was read before it stays, if it leads there. */
  async readEnd(): Promise<void> {
    const tail = await this.#agent.history(this.#slot, { limit: tailSize });
    if (tail.length < tailSize) return this.#take(tail, false);
    const at = this.#messages.findIndex(({ id }) => id === tail[0]?.id);
    if (at < 0) this.#take(tail, true);
    else this.#take([...this.#messages.slice(0, at), ...tail], this.hasOlder);
  }

  /** Reads the page before the oldest message; whether there is something new. */
  readOlder(): Promise<boolean> {
    if (!this.hasOlder) return Promise.resolve(false);
    this.#paging ??= this.#readOlder().finally(() => (this.#paging = null));
    return this.#paging;
  }

  forget(): void {
    this.#take([], false);
  }

  async #readOlder(): Promise<boolean> {
    const before = this.#messages[0]?.id;
    if (before === undefined) return false;
    const page = await this.#agent.history(this.#slot, { before, limit: pageSize });
    // Meanwhile another branch may have taken its place.
    if (this.#messages[0]?.id !== before) return false;
    this.#take([...page, ...this.#messages], page.length === pageSize);
    return true;
  }

  #take(messages: readonly Msg[], hasOlder: boolean): void {
    this.#messages = messages;
    this.hasOlder = hasOlder;
    this.#turns = turnsOf(messages);
  }
}
