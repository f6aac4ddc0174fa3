// The stored turns of a session: reads the newest page of the log, older pages on request, and the end again after each call.
import type { Agent, Msg, Slot } from "lockgate";
import { turnsOf } from "./turn.ts";
import type { Ending, Turn } from "./turn.ts";

const pageSize = 1000;
/** The number of messages that are read again after a call. A call usually adds fewer. */
const tailSize = 100;

export class Past {
  hasOlder = false;
  /** Whether the last turn was cut off, so that it can be continued. */
  isCutOff = false;
  /** Whether the store has no such session. */
  isMissing = false;
  /** Whether the store had it once. */
  wasStored = false;
  #agent: Agent;
  #slot: Slot;
  #messages: readonly Msg[] = [];
  #turns: readonly Turn[] | null = null;
  #paging: Promise<boolean> | null = null;
  #endings = new Map<string, Ending>();

  constructor(agent: Agent, slot: Slot) {
    this.#agent = agent;
    this.#slot = slot;
  }

  /** Null before the first read. */
  get turns(): readonly Turn[] | null {
    return this.#turns;
  }

  async read(): Promise<void> {
    const messages = await this.#read(pageSize);
    this.#take(messages, messages.length === pageSize);
  }

  /** Keeps more about the end of a turn than the log has, until the page is left. */
  note(messageId: string, ending: Ending): void {
    this.#endings.set(messageId, ending);
  }

  /** Reads the end of the log again. Older messages are kept if the new end connects to them. */
  async readEnd(): Promise<void> {
    const tail = await this.#read(tailSize);
    if (tail.length < tailSize) return this.#take(tail, false);
    const at = this.#messages.findIndex(({ id }) => id === tail[0]?.id);
    if (at < 0) this.#take(tail, true);
    else this.#take([...this.#messages.slice(0, at), ...tail], this.hasOlder);
  }

  /** Reads the page before the oldest message. Returns whether messages were added. */
  readOlder(): Promise<boolean> {
    if (!this.hasOlder) return Promise.resolve(false);
    this.#paging ??= this.#readOlder().finally(() => (this.#paging = null));
    return this.#paging;
  }

  forget(): void {
    this.isMissing = true;
    this.#take([], false);
  }

  async #read(limit: number): Promise<readonly Msg[]> {
    const [messages, info] = await Promise.all([
      this.#agent.history(this.#slot, { limit }),
      this.#agent.session(this.#slot),
    ]);
    this.isCutOff = info?.interrupted === true;
    this.isMissing = info === null;
    this.wasStored ||= info !== null;
    return messages;
  }

  async #readOlder(): Promise<boolean> {
    const before = this.#messages[0]?.id;
    if (before === undefined) return false;
    const page = await this.#agent.history(this.#slot, { before, limit: pageSize });
    // The session may have switched to another branch in the meantime.
    if (this.#messages[0]?.id !== before) return false;
    this.#take([...page, ...this.#messages], page.length === pageSize);
    return true;
  }

  #take(messages: readonly Msg[], hasOlder: boolean): void {
    this.#messages = messages;
    this.hasOlder = hasOlder;
    this.#turns = turnsOf(messages, this.#endings);
  }
}
