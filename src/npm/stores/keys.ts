// What stores that lay themselves out by user know of keys: `<format>.<agent>/<user>/` is the partition of a record.

import { LockgateError } from "../errors.js";
import type { Batch, StoredRecord } from "../store-types.js";

/** A page of a list, as a store is asked for it. */
export interface Page {
  readonly after?: string;
  readonly limit?: number;
  readonly keysOnly?: boolean;
}

export type Listed = StoredRecord & { readonly key: string };

const PART = /^[a-z0-9.-]+$/;

/** Whether this may be a part of a key: `.` and `..` never are, so no key can leave a folder. */
export const isPart = (part: string): boolean => PART.test(part) && part !== "." && part !== "..";

/** The first two parts of a key with their slashes, or INPUT_INVALID if it is no key. */
export function partitionOf(key: string): string {
  const parts = key.split("/");
  if (parts.length < 3 || key.length > 512 || !parts.every(isPart)) throw notOurs(`${JSON.stringify(key)} is no key`);
  return `${parts[0]}/${parts[1]}/`;
}

/** The places in a list of keys that belong to each partition. */
export function byPartition(keys: readonly string[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  keys.forEach((key, index) => {
    const partition = partitionOf(key);
    const own = places.get(partition);
    if (own === undefined) places.set(partition, [index]);
    else own.push(index);
  });
  return places;
}

/** The partition of a prefix that lies within one, or undefined if it may reach over several. */
export function partitionOfPrefix(prefix: string): string | undefined {
  const [agent, user, ...rest] = prefix.split("/");
  if (agent === undefined || user === undefined || rest.length === 0) return undefined;
  return partitionOf(`${agent}/${user}/x`);
}

/** The one partition of a batch; undefined if the batch has nothing in it. */
export function partitionOfBatch(batch: Batch): string | undefined {
  const keys = [...batch.put.map(({ key }) => key), ...batch.remove, ...(batch.expect ? [batch.expect.key] : [])];
  const found = new Set(keys.map(partitionOf));
  for (const prefix of batch.removePrefix ?? []) {
    const partition = partitionOfPrefix(prefix);
    if (partition === undefined) throw notOurs(`${JSON.stringify(prefix)} reaches over several users`);
    found.add(partition);
  }
  if (found.size > 1) throw notOurs("the batch has records of several users");
  return found.values().next().value;
}

/** Whether a partition may hold keys of the prefix that come after `after`. */
export function isWithin(partition: string, prefix: string, after: string | undefined): boolean {
  if (!partition.startsWith(prefix) && !prefix.startsWith(partition)) return false;
  return after === undefined || after.startsWith(partition) || partition > after;
}

/** A list over several partitions, which come in key order. */
export async function listAll(
  partitions: readonly string[],
  prefix: string,
  page: Page,
  list: (partition: string, page: Page) => Promise<readonly Listed[]>,
): Promise<Listed[]> {
  const found: Listed[] = [];
  for (const partition of partitions.filter((each) => isWithin(each, prefix, page.after))) {
    const limit = (page.limit ?? Infinity) - found.length;
    if (limit <= 0) break;
    found.push(...(await list(partition, { ...page, ...(limit !== Infinity && { limit }) })));
  }
  return found;
}

/** The first text behind all that begin with `prefix`, if there is one. */
export function endOf(prefix: string): string | undefined {
  if (prefix === "") return undefined;
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

function notOurs(message: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint: "keys are parts of [a-z0-9.-] joined by /, at most 512 bytes, and a batch is of one user" });
}
