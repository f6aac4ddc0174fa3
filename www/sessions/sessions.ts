// The sessions of one user, newest first, read page by page and updated by events of this tab and others.
import type { Agent, AgentEvent, SearchHit, SessionEvent, SessionInfo, Slot } from "lockgate";
import { problemOf } from "../session/turn.ts";
import type { Problem } from "../session/turn.ts";

/** A hit of a search, with the title of its session. */
export interface Found extends SearchHit {
  readonly title: string;
}

const pageSize = 100;
const maxHits = 40;
/** The pause before a search, so that not every letter starts one. */
const pauseMs = 120;

export class Sessions {
  readonly userId: string | null;
  isListed = false;
  hasMore = false;
  /** Why the list could not be read. */
  problem: Problem | null = null;
  query = "";
  /** Null without a query, and until the first answer. */
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

  /** Without removed sessions: a list that was requested before a deletion may arrive after it. */
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
      // Sessions of later pages stay after the first page.
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
      // Updates the badge now. The `session-changed` event comes later.
      const asking = event.type === "call-end" && event.reply.reason === "asking";
      const known = this.#infos.find((info) => info.sessionId === sessionId);
      if (known) this.#put({ ...known, running: false, asking });
    }
  }

  /** Hides a session in the list. `unhide` shows it again. */
  hide(sessionId: string): void {
    this.#gone.add(sessionId);
    this.#changed();
  }

  unhide(sessionId: string): void {
    if (this.#gone.delete(sessionId)) this.#changed();
  }

  /** Searches the sessions when the query has not changed for a moment. */
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

/** Sorted by cursor: the session that changed last has the smallest one. */
function merged(
  old: readonly SessionInfo[],
  news: readonly SessionInfo[],
): readonly SessionInfo[] {
  const ids = new Set(news.map(({ sessionId }) => sessionId));
  const all = [...news, ...old.filter(({ sessionId }) => !ids.has(sessionId))];
  return all.sort((one, other) => (one.cursor < other.cursor ? -1 : 1));
}
