// The sessions and their conversations, kept in step with the agent; all deeds go through here.
import { useEffect, useReducer } from "preact/hooks";
import type { Agent, Call, SessionInfo } from "lockgate";
import { asked, failed, heard, problemOf, turnsOf } from "./turn.ts";
import type { Problem, Turn } from "./turn.ts";
import { forgetLeftover, leftovers, writeLeftover } from "./leftovers.ts";

export interface Conversation {
  /** Null until the history is read. */
  readonly turns: readonly Turn[] | null;
  readonly draft: string;
  readonly problem: Problem | null;
}

/** A session that is gone from the list, and will be gone from the store unless it is kept. */
export interface Removal {
  readonly sessionId: string;
  readonly title: string;
  readonly wasOpen: boolean;
}

const undoMs = 6000;
const unread: Conversation = { turns: null, draft: "", problem: null };

export class Chat {
  #agent: Agent;
  #sessions: readonly SessionInfo[] = [];
  #conversations = new Map<string, Conversation>();
  #reading = new Map<string, Promise<void>>();
  #calls = new Map<string, Call>();
  #gone = new Set<string>();
  #removal: (Removal & { readonly timer: number }) | null = null;
  #listeners = new Set<() => void>();
  #frame = 0;
  isListed = false;
  /** Why the list could not be read, or a session not be deleted. */
  problem: Problem | null = null;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  get removal(): Removal | null {
    return this.#removal;
  }

  /** Newest first, less what is gone: a list asked for before a deletion may answer after it. */
  get sessions(): readonly SessionInfo[] {
    const removed = this.#removal?.sessionId;
    return this.#sessions.filter((s) => s.sessionId !== removed && !this.#gone.has(s.sessionId));
  }

  conversation(sessionId: string): Conversation {
    return this.#conversations.get(sessionId) ?? unread;
  }

  isRunning(sessionId: string): boolean {
    return this.conversation(sessionId).turns?.some(isLive) ?? false;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Finishes what an earlier page could not, then lists what there is. */
  async start(): Promise<void> {
    for (const sessionId of leftovers()) await this.#delete(sessionId);
    await this.refresh();
  }

  async refresh(): Promise<void> {
    try {
      this.#sessions = await this.#agent.listSessions(null);
      this.problem = null;
      this.isListed = true;
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#tell();
  }

  /** Reads the history once; later calls share that reading. */
  open(sessionId: string): Promise<void> {
    const reading = this.#reading.get(sessionId) ?? this.#read(sessionId);
    this.#reading.set(sessionId, reading);
    return reading;
  }

  /** Reads the history again, as another tab may have written it, unless a call of ours runs. */
  async reopen(sessionId: string): Promise<void> {
    if (this.isRunning(sessionId)) return;
    this.#reading.delete(sessionId);
    await this.open(sessionId);
  }

  write(sessionId: string, draft: string): void {
    this.#change(sessionId, { draft });
    this.#tell();
  }

  async send(sessionId: string, text: string): Promise<void> {
    if (this.#removal?.sessionId === sessionId) this.keep();
    this.#gone.delete(sessionId);
    this.write(sessionId, "");
    await this.open(sessionId);
    const turn = asked(text);
    const turns = this.conversation(sessionId).turns ?? [];
    this.#change(sessionId, { turns: [...turns.filter((t) => t.accepted || isLive(t)), turn] });
    this.#tell();
    await this.#follow(sessionId, turn);
  }

  /** Stops the call that runs; those that wait behind it go on. */
  stop(sessionId: string): void {
    const turn = this.conversation(sessionId).turns?.find(isLive);
    if (turn) this.#calls.get(turn.key)?.stop();
  }

  remove(removal: Removal): void {
    this.flush();
    const timer = window.setTimeout(() => this.flush(), undoMs);
    this.#removal = { ...removal, timer };
    this.#tell();
  }

  keep(): void {
    clearTimeout(this.#removal?.timer);
    this.#removal = null;
    this.#tell();
  }

  /**
   * Really deletes what was removed. A page that goes away may be gone before the store answers,
   * so it is written down first.
   */
  flush(): void {
    const removal = this.#removal;
    if (!removal) return;
    writeLeftover(removal.sessionId);
    this.keep();
    void this.#delete(removal.sessionId);
  }

  async #delete(sessionId: string): Promise<void> {
    this.#gone.add(sessionId);
    this.#tell();
    try {
      await this.#agent.deleteSession({ sessionId });
      this.#conversations.set(sessionId, { ...unread, turns: [] });
    } catch (error) {
      this.#gone.delete(sessionId);
      await this.refresh();
      this.problem = problemOf(error);
    }
    forgetLeftover(sessionId);
    this.#tell();
  }

  async #read(sessionId: string): Promise<void> {
    try {
      const turns = turnsOf(await this.#agent.history({ sessionId }));
      this.#change(sessionId, { turns, problem: null });
    } catch (error) {
      this.#reading.delete(sessionId);
      this.#change(sessionId, { problem: problemOf(error) });
    }
    this.#tell();
  }

  async #follow(sessionId: string, turn: Turn): Promise<void> {
    try {
      const call = this.#agent.stream(turn.question, { sessionId });
      this.#calls.set(turn.key, call);
      for await (const event of call) {
        this.#update(sessionId, turn.key, (now) => heard(now, event));
        if (event.type === "accepted") void this.refresh();
      }
    } catch (error) {
      this.#update(sessionId, turn.key, (now) => failed(now, error));
      this.#giveBack(sessionId, turn.key);
    }
    this.#calls.delete(turn.key);
    await this.refresh();
  }

  /** What was never stored goes back where it was typed. */
  #giveBack(sessionId: string, key: string): void {
    const { turns, draft } = this.conversation(sessionId);
    const turn = turns?.find((t) => t.key === key);
    if (turn && !turn.accepted && draft === "") this.#change(sessionId, { draft: turn.question });
  }

  #update(sessionId: string, key: string, next: (turn: Turn) => Turn): void {
    const { turns } = this.conversation(sessionId);
    if (!turns) return;
    this.#change(sessionId, { turns: turns.map((turn) => (turn.key === key ? next(turn) : turn)) });
    // Deltas come faster than a screen can show them: one drawing a frame is enough.
    this.#frame ||= requestAnimationFrame(() => this.#tell());
  }

  #change(sessionId: string, change: Partial<Conversation>): void {
    this.#conversations.set(sessionId, { ...this.conversation(sessionId), ...change });
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

function isLive(turn: Turn): boolean {
  return turn.progress !== "ended";
}
