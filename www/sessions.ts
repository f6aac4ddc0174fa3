// The sessions of one user, newest first and page by page, kept in step with what happens in this tab and others.
import type { Agent, AgentEvent, SearchHit, SessionEvent, SessionInfo, Slot } from "lockgate";
import { problemOf } from "./turn.ts";
import type { Problem } from "./turn.ts";

/** A hit of a search, with the title of its session. */
export interface Found extends SearchHit {
  readonly title: string;
}

const pageSize = 100;
const maxHits = 40;
/** Long enough that not every letter is a search. */
const pauseMs = 120;

export class Sessions {
  readonly userId: string | null;
  isListed = false;
  hasMore = false;
  /** Why the list could not be read. */
  problem: Problem | null = null;
  query = "";
  /** Null while nothing was searched for, or no answer is there yet. */
  found: readonly Found[] | null = null;
  #agent: Agent;
  #changed: () => void;
  #infos: readonly SessionInfo[] = [];
  #end = "";
  #running = new Set<string>();
  #gone = new Set<string>();
  #paging: Promise<void> | null = null;
  #pause = 0;

  constructor(agent: Agent, userId: string | null, changed: () => void) {
    this.#agent = agent;
    this.userId = userId;
    this.#changed = changed;
  }

  /** Less what is gone: a list asked for before a deletion may answer after it. */
  get infos(): readonly SessionInfo[] {
    return this.#infos.filter(({ sessionId }) => !this.#gone.has(sessionId));
  }

  isRunning({ sessionId, running }: Pick<SessionInfo, "sessionId" | "running">): boolean {
    return running || this.#running.has(sessionId);
  }

  async refresh(): Promise<void> {
    try {
      const page = await this.#agent.listSessions(this.userId, { limit: pageSize });
      const last = page.at(-1)?.cursor ?? "";
      const isAll = page.length < pageSize;
      // What was read of later pages still stands behind the first.
      const later = isAll ? [] : this.#infos.filter(({ cursor }) => cursor > last);
      if (isAll || !later.length) [this.#end, this.hasMore] = [last, !isAll];
      this.#infos = merged(later, page);
      this.problem = null;
      this.isListed = true;
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#changed();
  }

  more(): Promise<void> {
    if (!this.hasMore) return Promise.resolve();
    this.#paging ??= this.#readMore().finally(() => (this.#paging = null));
    return this.#paging;
  }

  hear(event: AgentEvent | SessionEvent): void {
    if (event.type === "user-deleted") return void this.refresh();
    if (!("slot" in event)) return;
    const { sessionId } = event.slot;
    if (event.type === "session-deleted") this.#remove(sessionId);
    else if (event.type === "session-changed") this.#put(event.info);
    else if (event.type === "accepted") {
      this.#running.add(sessionId);
      void this.#look(event.slot);
    } else if (event.type === "call-end" || event.type === "error") {
      this.#running.delete(sessionId);
      // Until the news of the change come, the badge says what is known already.
      const asking = event.type === "call-end" && event.reply.reason === "asking";
      const known = this.#infos.find((info) => info.sessionId === sessionId);
      if (known) this.#put({ ...known, running: false, asking });
    }
  }

  /** Takes a session off the list, or puts it back. */
  hide(sessionId: string): void {
    this.#gone.add(sessionId);
    this.#changed();
  }

  unhide(sessionId: string): void {
    if (this.#gone.delete(sessionId)) this.#changed();
  }

  /** Searches what was said, once the words have stood for a moment. */
  search(query: string): void {
    this.query = query;
    clearTimeout(this.#pause);
    if (!query.trim()) this.found = null;
    else this.#pause = window.setTimeout(() => void this.#find(query), pauseMs);
    this.#changed();
  }

  async #find(query: string): Promise<void> {
    try {
      const options = { userId: this.userId, limit: maxHits };
      const hits = await this.#agent.search(query, options);
      const titles = new Map(this.#infos.map(({ sessionId, title }) => [sessionId, title]));
      const unknown = new Set(hits.map(({ slot }) => slot.sessionId).filter((id) => !titles.has(id)));
      for (const sessionId of unknown) {
        const info = await this.#agent.session({ userId: this.userId, sessionId });
        titles.set(sessionId, info?.title ?? "");
      }
      if (query !== this.query) return;
      this.found = hits
        .filter(({ slot }) => !this.#gone.has(slot.sessionId))
        .map((hit) => ({ ...hit, title: titles.get(hit.slot.sessionId) ?? "" }));
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#changed();
  }

  async #readMore(): Promise<void> {
    try {
      const options = { after: this.#end, limit: pageSize };
      const page = await this.#agent.listSessions(this.userId, options);
      this.#infos = merged(this.#infos, page);
      this.#end = page.at(-1)?.cursor ?? this.#end;
      this.hasMore = page.length === pageSize;
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#changed();
  }

  async #look(slot: Slot): Promise<void> {
    const info = await this.#agent.session(slot).catch(() => null);
    if (info) this.#put(info);
  }

  #put(info: SessionInfo): void {
    this.#infos = merged(this.#infos, [info]);
    this.#changed();
  }

  #remove(sessionId: string): void {
    this.#infos = this.#infos.filter((info) => info.sessionId !== sessionId);
    this.#changed();
  }
}

/** The cursor is the order: what changed last has the smallest. */
function merged(
  old: readonly SessionInfo[],
  news: readonly SessionInfo[],
): readonly SessionInfo[] {
  const ids = new Set(news.map(({ sessionId }) => sessionId));
  const all = [...news, ...old.filter(({ sessionId }) => !ids.has(sessionId))];
  return all.sort((one, other) => (one.cursor < other.cursor ? -1 : 1));
}
