// `fileStore`: files in a folder, for Node. Each user has a folder, and several processes may use the store at once.

import * as fs from "node:fs/promises";
import path from "node:path";
import process from "node:process";

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoreReport, StoredRecord } from "../types/store.js";
import { fromDisk, isFolder, namesIn } from "./files/disk.js";
import { Journal } from "./files/journal.js";
import { isMark } from "./files/user-mark.js";
import { byPartition, isPart, listAll, partitionOfBatch, partitionOfPrefix } from "./keys.js";
import type { Page } from "./keys.js";
import { ReadableJournal } from "./readable/journal.js";
import { LOGS_FOLDER, foldersOf } from "./readable/names.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "host",
  durability: "disk",
  evictable: false,
  maxValueBytes: null,
};

/** The number of users whose journals stay open. The others are read again when they are needed. */
const MAX_OPEN = 256;

/** What `fileStore` may be given. */
export interface FileStoreOptions {
  /**
   * Also keeps logs that people can read, for `grep`, `jq` and audits, in `<directory>/agents/<agent>/<user>/sessions`:
   * `sessions.json`, and one append-only `<sessionId>.log.jsonl` per session. They are derived from the records and never read
   * back. If one lags or is damaged, it is made anew when the user's records are next opened.
   */
  readonly readable?: boolean;
}

/** A store in a folder. The folder is made with the first record. Nothing is read or written before the first call. */
export function fileStore(directory: string, options: FileStoreOptions = {}): Store {
  if (typeof directory !== "string" || directory === "") {
    throw new LockgateError("OPTIONS", "fileStore needs the path of a folder", { hint: 'fileStore("./.lockgate")' });
  }
  const { readable = false } = checked(options);
  // Resolved now, because the process may change its working directory later.
  const root = path.resolve(directory);
  const journals = new Map<string, Journal | ReadableJournal>();
  const failed = warnOnce(root);

  const begin = (partition: string): Journal | ReadableJournal => {
    const folder = path.join(root, ...partition.split("/"));
    const names = readable ? foldersOf(partition) : undefined;
    return names === undefined ? new Journal(folder) : new ReadableJournal(folder, { root, names, partition, failed });
  };
  const journalOf = (partition: string): Journal | ReadableJournal => {
    if (partition.startsWith(`${LOGS_FOLDER}/`)) throw reserved();
    const journal = journals.get(partition) ?? begin(partition);
    journals.delete(partition);
    journals.set(partition, journal);
    for (const [name, each] of journals) {
      if (journals.size <= MAX_OPEN) break;
      if (each.isIdle) journals.delete(name);
    }
    return journal;
  };

  return {
    name: `files in ${directory}`,
    capabilities: CAPABILITIES,
    get: withTypedErrors(async (keys: readonly string[]) => {
      const found: (StoredRecord | null)[] = keys.map(() => null);
      for (const [partition, indexes] of byPartition(keys)) {
        const records = await journalOf(partition).get(indexes.map((index) => keys[index]!));
        indexes.forEach((index, at) => (found[index] = records[at]!));
      }
      return found;
    }),
    list: withTypedErrors(async (prefix: string, page: Page = {}) => {
      const partition = partitionOfPrefix(prefix);
      const partitions = partition === undefined ? await partitionsIn(root) : [partition];
      return listAll(partitions, prefix, page, (each, rest) => journalOf(each).list(prefix, rest));
    }),
    commit: withTypedErrors(async (batch: Batch) => {
      const partition = partitionOfBatch(batch);
      return partition === undefined ? "ok" as const : journalOf(partition).commit(batch);
    }),
    report: () => durabilityOf(root),
    async close() {
      await Promise.all([...journals.values()].map((journal) => journal.idle()));
      journals.clear();
    },
  };
}

function checked(options: unknown): FileStoreOptions {
  const unknown = typeof options !== "object" || options === null ? ["it"] : Object.keys(options).filter((name) => name !== "readable");
  const { readable } = (options ?? {}) as { readonly readable?: unknown };
  if (unknown.length === 0 && (readable === undefined || typeof readable === "boolean")) return options as FileStoreOptions;
  const message = unknown.length > 0 ? `fileStore has no option ${unknown.join(", ")}` : "fileStore: readable is not a boolean";
  throw new LockgateError("OPTIONS", message, { hint: 'fileStore("./.lockgate", { readable: true })' });
}

function reserved(): LockgateError {
  return new LockgateError("INPUT_INVALID", `the file store has no keys that begin with ${LOGS_FOLDER}/`, {
    hint: "this folder holds readable logs: choose another first part",
  });
}

/** Warns that readable logs lag, once per store. A call does not fail for that: its records are stored. */
function warnOnce(root: string): (error: unknown) => void {
  let isWarned = false;
  return (error) => {
    if (isWarned) return;
    isWarned = true;
    const why = error instanceof Error ? error.message : String(error);
    process.emitWarning(`the readable logs in ${path.join(root, LOGS_FOLDER)} could not be written: ${why}`, {
      type: "LockgateWarning",
      code: "READABLE_LOGS",
      detail: "The sessions are stored. The logs are written with the next commit, or made anew at the next opening.",
    });
  };
}

/** What the file system of the folder says about how long files stay. */
async function durabilityOf(root: string): Promise<StoreReport> {
  if (!(await isInMemory(root))) return { durability: "durable", warnings: [] };
  return { durability: "not-durable", warnings: [`${root} is in memory (tmpfs): sessions are gone when the machine or container restarts. Use a folder on a disk`] };
}

/** The type by which Linux marks file systems in memory. */
const TMPFS = 0x01021994;

/** Whether the folder, or the one in which it will be made, is on a file system in memory. */
async function isInMemory(folder: string): Promise<boolean> {
  const found = await fs.statfs(folder).catch(() => undefined);
  const parent = path.dirname(folder);
  if (found === undefined) return parent !== folder && isInMemory(parent);
  return process.platform === "linux" && found.type === TMPFS;
}

/** The method, with errors of the file system turned into LockgateErrors. */
function withTypedErrors<A extends readonly unknown[], T>(method: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      throw fromDisk(error);
    }
  };
}

/** The users that have a folder, in key order. */
async function partitionsIn(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const agent of (await namesIn(root)).filter(isPart)) {
    if (agent === LOGS_FOLDER || !(await isFolder(path.join(root, agent)))) continue;
    const users = (await namesIn(path.join(root, agent))).filter((name) => isPart(name) && !isMark(name));
    for (const user of users) found.push(`${agent}/${user}/`);
  }
  return found.sort();
}
