// The agent and its data in the page: users, their sessions, the open conversations, and actions on sessions.
import { useEffect, useReducer } from "preact/hooks";
import type { Agent, AgentEvent, SessionEvent, Slot } from "lockgate";
import { forgetLeftover, leftovers, writeLeftover } from "../sessions/unfinished-deletions.ts";
import type { MediaBlock } from "../session/part.ts";
import { Sessions } from "../sessions/sessions.ts";
import { Talk } from "../session/session.ts";
import { problemOf } from "../session/turn.ts";
import type { Problem } from "../session/turn.ts";

/** A session that is removed from the list. It is deleted from the store later, unless the user undoes the removal. */
export interface Removal {
  readonly slot: Slot;
  readonly title: string;
  readonly wasOpen: boolean;
}

const formats = {
  lockgate: [".json", "application/json"],
  agentscope: [".agentscope.json", "application/json"],
  markdown: [".md", "text/markdown"],
} as const;

export type ExportFormat = keyof typeof formats;

/** Loaded when files come or go. */
const transfer = () => import("../controls/file-transfer.ts");

const undoMs = 6000;

export class Chat {
  readonly agent: Agent;
  /** Named users that have sessions or were just added. */
  users: readonly string[] = [];
  /** Why an action on a session failed, until the user dismisses it. */
  problem: Problem | null = null;
  #sessions = new Map<string | null, Sessions>();
  #talks = new Map<string, Talk>();
  #removal: (Removal & { readonly timer: number }) | null = null;
  #listeners = new Set<() => void>();
  #frame = 0;
  #unsubscribe: () => void;

  constructor(agent: Agent) {
    this.agent = agent;
    this.#unsubscribe = agent.subscribe("everyone", (event) => this.#hear(event));
  }

  get removal(): Removal | null {
    return this.#removal;
  }

  sessions(userId: string | null): Sessions {
    let sessions = this.#sessions.get(userId);
    if (!sessions) {
      sessions = new Sessions(this.agent, userId, () => this.#tell());
      this.#sessions.set(userId, sessions);
      void sessions.refresh();
    }
    return sessions;
  }

  talk(slot: Slot): Talk {
    const name = nameOf(slot);
    let talk = this.#talks.get(name);
    if (!talk) {
      talk = new Talk(this.agent, slot, {
        changed: (when) => (when === "now" ? this.#tell() : this.#tellSoon()),
        failed: (problem) => this.#fail(problem),
      });
      this.#talks.set(name, talk);
    }
    return talk;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Finishes the deletions of an earlier page, then reads the users. */
  async start(): Promise<void> {
    for (const slot of leftovers()) await this.#delete(slot);
    await this.#readUsers();
  }

  /** Reads what may have changed while the page was hidden. */
  async refresh(slot: Slot): Promise<void> {
    await Promise.all([
      this.sessions(slot.userId ?? null).refresh(),
      this.talk(slot).reopen(),
      this.#readUsers(),
    ]);
  }

  addUser(userId: string): void {
    this.users = [...new Set([...this.users, userId])].sort();
    this.#tell();
  }

  /** Copies drafts and images that were not sent from the previous chat. */
  takeOver(last: Chat): void {
    for (const talk of last.#talks.values()) this.talk(talk.slot).takeOver(talk);
  }

  /** Ends the subscription, because another chat takes its place. */
  close(): void {
    this.flush();
    this.#unsubscribe();
  }

  /** Draws again after a change of page data, such as a draft. */
  redraw(): void {
    this.#tell();
  }

  dismiss(): void {
    this.problem = null;
    this.#tell();
  }

  async rename(slot: Slot, title: string): Promise<void> {
    await this.#deed(() => this.agent.renameSession(slot, title));
  }

  /** Copies a session, or its part up to a message. Returns the id of the copy. */
  async fork(slot: Slot, upTo?: string): Promise<string | null> {
    const to = { userId: slot.userId ?? null, sessionId: crypto.randomUUID() };
    const info = await this.#deed(() => this.agent.fork(slot, to, upTo === undefined ? {} : { upTo }));
    return info?.sessionId ?? null;
  }

  /** Downloads the session as a file with its title as name. */
  async export(slot: Slot, title: string, format: ExportFormat): Promise<void> {
    await this.#deed(async () => {
      const text = await this.agent.exportSession(slot, format);
      const { fileName, save } = await transfer();
      const [ending, type] = formats[format];
      save(`${fileName(title)}${ending}`, type, text);
    });
  }

  /** The images among the files, as blocks of a message. */
  async imagesOf(files: readonly File[]): Promise<readonly MediaBlock[]> {
    return (await this.#deed(async () => (await transfer()).imagesOf(files))) ?? [];
  }

  /** Makes a session from each text. Returns the id of the last one. */
  async imported(userId: string | null, texts: readonly string[]): Promise<string | null> {
    let last: string | null = null;
    for (const text of texts) {
      const slot = { userId, sessionId: crypto.randomUUID() };
      const info = await this.#deed(() => this.agent.importSession(slot, text));
      last = info?.sessionId ?? last;
    }
    return last;
  }

  remove(removal: Removal): void {
    this.flush();
    const timer = window.setTimeout(() => this.flush(), undoMs);
    this.#removal = { ...removal, timer };
    this.sessions(removal.slot.userId ?? null).hide(removal.slot.sessionId);
  }

  keep(): void {
    const removal = this.#take();
    if (removal) this.sessions(removal.slot.userId ?? null).unhide(removal.slot.sessionId);
  }

  /** Deletes the removed session from the store. The page may end before the store answers, so the deletion is noted first. */
  flush(): void {
    const removal = this.#take();
    if (!removal) return;
    writeLeftover(removal.slot);
    void this.#delete(removal.slot);
  }

  #take(): Removal | null {
    const removal = this.#removal;
    clearTimeout(removal?.timer);
    this.#removal = null;
    this.#tell();
    return removal;
  }

  async #delete(slot: Slot): Promise<void> {
    const sessions = this.sessions(slot.userId ?? null);
    sessions.hide(slot.sessionId);
    try {
      await this.agent.deleteSession(slot);
      this.#talks.get(nameOf(slot))?.forget();
    } catch (error) {
      sessions.unhide(slot.sessionId);
      this.#fail(problemOf(error));
    }
    forgetLeftover(slot);
    this.#tell();
  }

  async #readUsers(): Promise<void> {
    const known = await this.agent.listUsers().catch(() => []);
    const named = known.map(({ userId }) => userId).filter((userId) => userId !== null);
    this.users = [...new Set([...this.users, ...named])].sort();
    this.#tell();
  }

  #hear(event: AgentEvent | SessionEvent): void {
    if (event.type === "storage") return;
    const userId = event.type === "user-deleted" ? event.userId : (event.slot.userId ?? null);
    this.#sessions.get(userId)?.hear(event);
    if (event.type === "user-deleted") return;
    const talk = this.#talks.get(nameOf(event.slot));
    if (event.type === "session-deleted") talk?.forget();
    else if (event.type === "session-changed") void talk?.changed();
    else talk?.hear(event);
  }

  async #deed<T>(deed: () => Promise<T>): Promise<T | null> {
    try {
      return await deed();
    } catch (error) {
      this.#fail(problemOf(error));
      return null;
    }
  }

  #fail(problem: Problem): void {
    this.problem = problem;
    this.#tell();
  }

  #tellSoon(): void {
    this.#frame ||= requestAnimationFrame(() => this.#tell());
  }

  #tell(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    for (const listener of this.#listeners) listener();
  }
}

/** Draws the component again when the chat has changed. */
export function useChat(chat: Chat): void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => chat.subscribe(() => draw(undefined)), [chat]);
}

function nameOf({ userId, sessionId }: Slot): string {
  return JSON.stringify([userId ?? null, sessionId]);
}
