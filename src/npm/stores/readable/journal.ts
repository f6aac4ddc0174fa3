// A journal that also keeps logs for people: `sessions.json`, and one append-only log per session.
//
//   <store>/agents/<agent>/<user>/sessions/sessions.json          one line per session, newest first
//   <store>/agents/<agent>/<user>/sessions/<session>.log.jsonl    one line per message, in the order of the session's log
//
// The logs are derived from the records and never read back. A log is the lines of all entries of its session in the order of
// their keys, so every process can tell which lines it lacks: it compares the end of the file with the lines that should be there.
// The first use of a journal compares whole files. Processes write in turn, under a lock in the folder of the journal.

import path from "node:path";

import type { Batch, StoredRecord } from "../../types/store.js";
import type { Contents } from "../files/batch-file.js";
import { Journal } from "../files/journal.js";
import type { ListedRecord, Page } from "../keys.js";
import { LIST, bringUpToDate, logsIn, makeFolder, removeFile, removeLogs, writeFile } from "./files.js";
import type { End, Lines } from "./files.js";
import { lineOfSession, linesOfEntry } from "./lines.js";
import { removeLeftovers, underLock } from "./lock.js";
import { logName } from "./names.js";

/** How long a commit waits for other processes that write readable logs. After that, a later commit writes its lines. */
const PATIENCE_MS = 2_000;
/** Entries that are read at a time. */
const PAGE = 16;
/** A longer list of sessions is written at most once per second, because each time all of it is written. */
const LONG_LIST = { sessions: 1_000, everyMs: 1_000 };

/** Marks the key of a chunk, and begins a value that is stored in chunks: see `src/store/backend/chunks.rs`. */
const CHUNK = "--";
const MANIFEST = 0;

/** Where the readable logs of a user are, and what is told if they cannot be written. */
export interface LogsOptions {
  /** The folder of the store. */
  readonly root: string;
  /** The folders of the user below it. */
  readonly names: readonly string[];
  readonly partition: string;
  failed(error: unknown): void;
}

/** A journal with readable logs. Its methods are those of a journal. */
export class ReadableJournal {
  readonly #journal: Journal;
  readonly #folder: string;
  readonly #lock: string;
  readonly #options: LogsOptions;
  /** What has changed since the logs were written. */
  #changed = { sessions: new Set<string>(), list: true, everything: true };
  readonly #ends = new Map<string, End>();
  readonly #lines = new Map<string, { readonly revision: string; readonly text: string }>();
  #listedAt = 0;
  #listLater: NodeJS.Timeout | undefined;
  #queue: Promise<void> = Promise.resolve();
  #opened: Promise<void> | undefined;

  constructor(folder: string, options: LogsOptions) {
    this.#journal = new Journal(folder, (contents, isBase) => this.#applied(contents, isBase));
    this.#folder = path.join(options.root, ...options.names);
    this.#lock = path.join(folder, "_logs");
    this.#options = options;
  }

  async get(keys: readonly string[]): Promise<(StoredRecord | null)[]> {
    await this.#open();
    return this.#journal.get(keys);
  }

  async list(prefix: string, page: Page): Promise<ListedRecord[]> {
    await this.#open();
    return this.#journal.list(prefix, page);
  }

  async commit(batch: Batch): Promise<"ok" | "conflict"> {
    await this.#open();
    // Before the records: if a log cannot be removed, the deletion fails and can be tried again.
    if ((batch.removePrefix?.length ?? 0) > 0) await this.#removeLogs(batch.removePrefix!);
    try {
      return await this.#journal.commit(batch);
    } finally {
      await this.#update();
    }
  }

  /** Resolves when nothing is left to write. */
  async idle(): Promise<void> {
    this.#listedAt = 0;
    await this.#update();
    await this.#journal.idle();
  }

  get isIdle(): boolean {
    return this.#journal.isIdle && this.#listLater === undefined;
  }

  /** At the first use, logs that lag or are damaged are made anew. */
  #open(): Promise<void> {
    return (this.#opened ??= this.#update());
  }

  /** Notes what a part of the journal changes. */
  #applied({ put, remove, removePrefix }: Contents, isBase: boolean): void {
    const changed = this.#changed;
    if (isBase) changed.everything = changed.list = true;
    for (const prefix of removePrefix) {
      const session = this.#sessionOf(prefix);
      if (session !== undefined) this.#forget(session);
      else if (this.#hasSessions(prefix)) {
        changed.everything = true;
        this.#ends.clear();
      }
      changed.list ||= this.#isListed(prefix) || this.#index.startsWith(prefix);
    }
    for (const key of remove) {
      const session = this.#sessionOf(key);
      if (session !== undefined) this.#forget(session);
      changed.list ||= this.#isListed(key);
    }
    for (const { key } of put) {
      const session = this.#sessionOf(key);
      // An entry before the end of the log replaces one that the log has.
      if (session !== undefined && key <= (this.#ends.get(session)?.last ?? "")) this.#forget(session);
      else if (session !== undefined) changed.sessions.add(session);
      changed.list ||= this.#isListed(key);
    }
  }

  /** The next comparison of this log begins at its start. */
  #forget(session: string): void {
    this.#ends.delete(session);
    this.#changed.sessions.add(session);
  }

  /** The session of a key of its log, or of a prefix that its whole log has. */
  #sessionOf(key: string): string | undefined {
    const [kind, session, below] = key.slice(this.#options.partition.length).split("/");
    return kind === "slot" && session && below !== undefined && "log".startsWith(below) ? session : undefined;
  }

  /** Whether logs of several sessions may have the prefix. */
  #hasSessions(prefix: string): boolean {
    const slots = `${this.#options.partition}slot/`;
    return slots.startsWith(prefix) || (prefix.startsWith(slots) && !prefix.slice(slots.length).includes("/"));
  }

  #isListed(key: string): boolean {
    return key.startsWith(this.#index);
  }

  get #index(): string {
    return `${this.#options.partition}index/`;
  }

  #log(session: string): string {
    return path.join(this.#folder, logName(session));
  }

  /** Removes logs before the records that they were derived from. */
  async #removeLogs(prefixes: readonly string[]): Promise<void> {
    const isUser = prefixes.includes(this.#options.partition);
    const sessions = prefixes.map((prefix) => this.#sessionOf(prefix)).filter((session) => session !== undefined);
    if (!isUser && sessions.length === 0) return;
    for (const session of sessions) this.#forget(session);
    if (isUser) {
      this.#ends.clear();
      this.#changed.everything = true;
      await removeLogs(this.#options.root, this.#options.names);
    } else {
      for (const session of sessions) await removeFile(this.#log(session));
    }
  }

  /** Writes what the logs lack. A failure is told once; the lines are written by a later commit, or at the next opening. */
  #update(): Promise<void> {
    const done = this.#queue.then(async () => {
      const { sessions, list, everything } = this.#changed;
      if (list && this.#isListPostponed()) this.#writeListLater();
      else if (list) this.#forgetTimer();
      if (sessions.size === 0 && !everything && (!list || this.#isListPostponed())) return;
      try {
        const locked = await underLock(this.#lock, PATIENCE_MS, () => this.#write());
        // Without a journal nothing is stored, so there is nothing to read either.
        if (locked.did === "nothing" && locked.why === "no folder") await this.#removeAll();
      } catch (error) {
        this.#options.failed(error);
      }
    });
    this.#queue = done;
    return done;
  }

  #isListPostponed(): boolean {
    return this.#lines.size > LONG_LIST.sessions && Date.now() - this.#listedAt < LONG_LIST.everyMs;
  }

  #writeListLater(): void {
    this.#listLater ??= setTimeout(() => {
      this.#listLater = undefined;
      void this.#update();
    }, LONG_LIST.everyMs).unref();
  }

  #forgetTimer(): void {
    clearTimeout(this.#listLater);
    this.#listLater = undefined;
  }

  async #write(): Promise<void> {
    if (this.#changed.everything) await removeLeftovers(this.#lock);
    // This reads the journal to its end: another process may have written logs for batches that we do not know.
    const isEmpty = (await this.#journal.list(this.#options.partition, { limit: 1, keysOnly: true })).length === 0;
    const todo = this.#changed;
    this.#changed = { sessions: new Set(), list: false, everything: false };
    if (isEmpty) return this.#removeAll();
    const failures: unknown[] = [];
    const attempt = (work: Promise<void>, again: () => void): Promise<void> =>
      work.catch((error: unknown) => {
        failures.push(error);
        again();
      });
    await attempt(makeFolder(this.#options.root, this.#options.names), () => {});
    let sessions: ReadonlySet<string> = todo.sessions;
    if (todo.everything) await attempt(this.#allSessions().then((all) => void (sessions = all)), () => (this.#changed.everything = true));
    for (const session of sessions) await attempt(this.#writeLog(session), () => this.#forget(session));
    if (todo.list && this.#isListPostponed()) this.#changed.list = true;
    else if (todo.list) await attempt(this.#writeList(), () => (this.#changed.list = true));
    if (failures.length > 0) throw failures[0];
    if (this.#lines.size === 0 && (await logsIn(this.#folder)).length === 0) await this.#removeAll();
  }

  async #removeAll(): Promise<void> {
    this.#ends.clear();
    this.#lines.clear();
    await removeLogs(this.#options.root, this.#options.names);
  }

  /** The sessions that have entries. Logs of other sessions are removed. */
  async #allSessions(): Promise<ReadonlySet<string>> {
    const sessions = new Set<string>();
    for (const { key } of await this.#journal.list(`${this.#options.partition}slot/`, { keysOnly: true })) {
      const session = this.#sessionOf(key);
      if (session !== undefined) sessions.add(session);
    }
    const names = new Set(Array.from(sessions, logName));
    for (const session of this.#ends.keys()) if (!sessions.has(session)) this.#ends.delete(session);
    for (const name of await logsIn(this.#folder)) if (!names.has(name)) await removeFile(path.join(this.#folder, name));
    return sessions;
  }

  async #writeLog(session: string): Promise<void> {
    const end = await bringUpToDate(this.#log(session), this.#ends.get(session), (last) => this.#linesAfter(session, last));
    if (end.last === undefined) this.#ends.delete(session);
    else this.#ends.set(session, end);
  }

  /** The lines of the entries behind an entry, some at a time. */
  async *#linesAfter(session: string, last: string | undefined): AsyncGenerator<Lines> {
    const prefix = `${this.#options.partition}slot/${session}/log/`;
    for (let after = last, isLast = false; !isLast; ) {
      const records = await this.#journal.list(prefix, { limit: PAGE, ...(after !== undefined && { after }) });
      isLast = records.length < PAGE;
      let text = "";
      for (const record of records.filter(({ key }) => !key.includes(CHUNK))) {
        const value = await this.#whole(record);
        text += this.#readable(() => linesOfEntry(record.key.slice(prefix.length), value)) ?? "";
      }
      after = records.at(-1)?.key ?? after;
      if (after !== undefined) yield { bytes: Buffer.from(text), last: after };
    }
  }

  /** The text of a record; undefined if it has none, for example because another store has encrypted it. */
  #readable(read: () => string): string | undefined {
    try {
      return read();
    } catch {
      // The error of the parser would quote the record.
      this.#options.failed(new Error("a record is not JSON"));
      return undefined;
    }
  }

  /** The value of a record, joined if it is stored in chunks. */
  async #whole({ key, value, revision }: ListedRecord): Promise<Uint8Array> {
    if (value[0] !== MANIFEST) return value;
    const nChunks = Number(Buffer.from(value.subarray(1)).toString().split(" ")[0]);
    const keys = Array.from({ length: nChunks }, (_, n) => `${key}${CHUNK}${revision}.${String(n).padStart(4, "0")}`);
    const chunks = await this.#journal.get(keys);
    if (chunks.includes(null)) throw new Error(`the chunks of ${key} are incomplete`);
    return Buffer.concat(chunks.map((chunk) => chunk!.value));
  }

  async #writeList(): Promise<void> {
    const listed = (await this.#journal.list(this.#index, { keysOnly: true })).filter(({ key }) => !key.includes(CHUNK));
    const keys = new Set(listed.map(({ key }) => key));
    for (const key of this.#lines.keys()) if (!keys.has(key)) this.#lines.delete(key);
    const fresh = listed.filter(({ key, revision }) => this.#lines.get(key)?.revision !== revision).map(({ key }) => key);
    const records = await this.#journal.get(fresh);
    for (const [at, record] of records.entries()) {
      const key = fresh[at]!;
      if (record === null) continue;
      // The name of a line is `<inverted time>.<session>`.
      const session = key.slice(this.#index.length + key.slice(this.#index.length).indexOf(".") + 1);
      const value = await this.#whole({ key, ...record });
      this.#lines.set(key, { revision: record.revision, text: this.#readable(() => lineOfSession(value, logName(session))) ?? "" });
    }
    const lines = listed.flatMap(({ key }) => this.#lines.get(key)?.text || []);
    await writeFile(path.join(this.#folder, LIST), Buffer.from(lines.length === 0 ? "[]\n" : `[\n${lines.join(",\n")}\n]\n`));
    this.#listedAt = Date.now();
  }
}
