// The agent as the page holds it: users, their sessions, the open conversations, and the deeds on whole sessions.
import { useEffect, useReducer } from "preact/hooks";
import type { Agent, AgentEvent, SessionEvent, Slot } from "lockgate";
import { loadLater } from "./lazy.tsx";
import { forgetLeftover, leftovers, writeLeftover } from "./leftovers.ts";
import type { MediaBlock } from "./part.ts";
import { Sessions } from "./sessions.ts";
import { Talk } from "./talk.ts";
import { problemOf } from "./turn.ts";
import type { Problem } from "./turn.ts";

/** A session that is gone from the list, and will be gone from the store unless it is kept. */
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

const undoMs = 6000;

export class Chat {
  readonly agent: Agent;
  /** Named users that have sessions, or were just made up. */
  users: readonly string[] = [];
  /** What a deed on a session failed with, until it is read. */
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

  /** Finishes what an earlier page could not, then looks who there is. */
  async start(): Promise<void> {
    for (const slot of leftovers()) await this.#delete(slot);
    await this.#readUsers();
  }

  /** Reads anew what may have been missed while the page was hidden. */
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

  /** What was typed and not sent goes along to where it is said next. */
  takeOver(last: Chat): void {
    for (const { slot, draft, images } of last.#talks.values()) {
      const talk = this.talk(slot);
      talk.draft = draft;
      talk.images = images;
    }
  }

  /** Lets go of the agent: another page takes its place. */
  close(): void {
    this.flush();
    this.#unsubscribe();
  }

  /** Something that the page keeps in a conversation, such as its draft, has changed. */
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

  /** Copies a session up to a message, or whole; answers with the copy's id. */
  async fork(slot: Slot, upTo?: string): Promise<string | null> {
    const to = { userId: slot.userId ?? null, sessionId: crypto.randomUUID() };
    const info = await this.#deed(() => this.agent.fork(slot, to, upTo === undefined ? {} : { upTo }));
    return info?.sessionId ?? null;
  }

  /** Gives the session to a person as a file that is called after its title. */
  async export(slot: Slot, title: string, format: ExportFormat): Promise<void> {
    await this.#deed(async () => {
      const text = await this.agent.exportSession(slot, format);
      const { fileName, save } = await loadLater();
      const [ending, type] = formats[format];
      save(`${fileName(title)}${ending}`, type, text);
    });
  }

  /** The images among files, as a message holds them. */
  async imagesOf(files: readonly File[]): Promise<readonly MediaBlock[]> {
    return (await this.#deed(async () => (await loadLater()).imagesOf(files))) ?? [];
  }

  /** Makes a session of each text; answers with the last one's id. */
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

  /** Really deletes what was removed. A page that goes away may be gone before the store answers, so it is written down first. */
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

/** Draws again whenever the chat has changed. */
export function useChat(chat: Chat): void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => chat.subscribe(() => draw(undefined)), [chat]);
}

function nameOf({ userId, sessionId }: Slot): string {
  return JSON.stringify([userId ?? null, sessionId]);
}
