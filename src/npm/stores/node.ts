// Files in a folder of this machine, for Node: one folder for each user, safe for several processes at once.

import path from "node:path";

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../store-types.js";
import { fromDisk, isFolder, namesIn } from "./disk.js";
import { Journal } from "./journal.js";
import { byPartition, isPart, listAll, partitionOfBatch, partitionOfPrefix } from "./keys.js";
import type { Page } from "./keys.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "host",
  durability: "disk",
  evictable: false,
  maxValueBytes: null,
};

/** So many users are kept in mind; the others are read again when they come back. */
const KEPT = 256;

/** A store in a folder, which is made when the first record is. Nothing is read or written before the first call. */
export function fileStore(directory: string): Store {
  if (typeof directory !== "string" || directory === "") {
    throw new LockgateError("OPTIONS", "a file store has a folder", { hint: 'fileStore("./.lockgate")' });
  }
  // Where the process stands now: it may go elsewhere later.
  const root = path.resolve(directory);
  const journals = new Map<string, Journal>();

  const journalOf = (partition: string): Journal => {
    const journal = journals.get(partition) ?? new Journal(path.join(root, ...partition.split("/")));
    journals.delete(partition);
    journals.set(partition, journal);
    for (const [name, each] of journals) {
      if (journals.size <= KEPT) break;
      if (each.isIdle) journals.delete(name);
    }
    return journal;
  };

  return {
    name: `files in ${directory}`,
    capabilities: CAPABILITIES,
    get: typed(async (keys: readonly string[]) => {
      const found: (StoredRecord | null)[] = keys.map(() => null);
      for (const [partition, indexes] of byPartition(keys)) {
        const records = await journalOf(partition).get(indexes.map((index) => keys[index]!));
        indexes.forEach((index, at) => (found[index] = records[at]!));
      }
      return found;
    }),
    list: typed(async (prefix: string, page: Page = {}) => {
      const partition = partitionOfPrefix(prefix);
      const partitions = partition === undefined ? await partitionsIn(root) : [partition];
      return listAll(partitions, prefix, page, (each, rest) => journalOf(each).list(prefix, rest));
    }),
    commit: typed(async (batch: Batch) => {
      const partition = partitionOfBatch(batch);
      return partition === undefined ? "ok" as const : journalOf(partition).commit(batch);
    }),
    async close() {
      await Promise.all([...journals.values()].map((journal) => journal.idle()));
      journals.clear();
    },
  };
}

/** The method, with what the disk throws as errors of ours. */
function typed<A extends readonly unknown[], T>(method: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
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
    if (!(await isFolder(path.join(root, agent)))) continue;
    for (const user of (await namesIn(path.join(root, agent))).filter(isPart)) found.push(`${agent}/${user}/`);
  }
  return found.sort();
}
