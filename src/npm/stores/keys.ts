// Keys and their partitions, for stores that keep users apart: the partition of a record is `<format>.<agent>/<user>/`.

import { LockgateError } from "../errors.js";
import type { Batch, StoredRecord } from "../types/store.js";

/** Which page of a list a store returns. */
export interface Page {
  /** Only keys after this one. Default: from the first key. */
  readonly after?: string;
  /** The most records. Default: no limit. */
  readonly limit?: number;
  /** Whether the values may be left empty. Default false. */
  readonly keysOnly?: boolean;
}

/** A record of a list, with its key. */
export type ListedRecord = StoredRecord & { readonly key: string };

const PART = /^[a-z0-9.-]+$/;

/** Whether a text may be a part of a key. `.` and `..` may not, so no key leads out of a folder. */
export const isPart = (part: string): boolean => PART.test(part) && part !== "." && part !== "..";

/** The first two parts of a key with their slashes. Throws INPUT_INVALID if the key is not valid. */
export function partitionOf(key: string): string {
  const parts = key.split("/");
  if (parts.length < 3 || key.length > 512 || !parts.every(isPart)) throw invalidKeys(`${JSON.stringify(key)} is not a valid key`);
  return `${parts[0]}/${parts[1]}/`;
}

/** For each partition, the indexes of its keys in the list. */
export function byPartition(keys: readonly string[]): Map<string, number[]> {
  const indexes = new Map<string, number[]>();
  keys.forEach((key, index) => {
    const partition = partitionOf(key);
    const own = indexes.get(partition);
    if (own === undefined) indexes.set(partition, [index]);
    else own.push(index);
  });
  return indexes;
}

/** The partition that a prefix lies in, or undefined if keys of several partitions may have the prefix. */
export function partitionOfPrefix(prefix: string): string | undefined {
  const [agent, user, ...rest] = prefix.split("/");
  if (agent === undefined || user === undefined || rest.length === 0) return undefined;
  return partitionOf(`${agent}/${user}/x`);
}

/** The partition of a batch; undefined if the batch is empty. Throws if the batch has several. */
export function partitionOfBatch(batch: Batch): string | undefined {
  const keys = [...batch.put.map(({ key }) => key), ...batch.remove, ...(batch.expect ? [batch.expect.key] : [])];
  const found = new Set(keys.map(partitionOf));
  for (const prefix of batch.removePrefix ?? []) {
    const partition = partitionOfPrefix(prefix);
    if (partition === undefined) throw invalidKeys(`the prefix ${JSON.stringify(prefix)} covers several users`);
    found.add(partition);
  }
  if (found.size > 1) throw invalidKeys("the batch has records of several users");
  return found.values().next().value;
}

/** Whether a partition may have keys with the prefix that come after `after`. */
export function isWithin(partition: string, prefix: string, after: string | undefined): boolean {
  if (!partition.startsWith(prefix) && !prefix.startsWith(partition)) return false;
  return after === undefined || after.startsWith(partition) || partition > after;
}

/** Lists the records of several partitions, which are given in key order. */
export async function listAll(
  partitions: readonly string[],
  prefix: string,
  page: Page,
  list: (partition: string, page: Page) => Promise<readonly ListedRecord[]>,
): Promise<ListedRecord[]> {
  const found: ListedRecord[] = [];
  for (const partition of partitions.filter((each) => isWithin(each, prefix, page.after))) {
    const limit = (page.limit ?? Infinity) - found.length;
    if (limit <= 0) break;
    found.push(...(await list(partition, { ...page, ...(limit !== Infinity && { limit }) })));
  }
  return found;
}

/** The first text that sorts after all texts with this prefix; undefined if there is none. */
export function endOf(prefix: string): string | undefined {
  if (prefix === "") return undefined;
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

function invalidKeys(message: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint: "keys are parts of [a-z0-9.-] joined by /, at most 512 bytes; all records of a batch belong to one user" });
}
