// The storage of a Durable Object, of either kind: key-value or SQLite.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../store-types.js";
import type { Listed, Page } from "./keys.js";

/** `ctx.storage` of a Durable Object, as far as it is used. */
export interface DurableStorage {
  get(keys: string[]): Promise<Map<string, unknown>>;
  // The contract leaves it open: the types of the platform's transactions come from elsewhere.
  transaction<T>(work: (txn: any) => Promise<T>): Promise<T>;
}

/** What of a transaction is used. */
interface Transaction {
  get(keys: string[]): Promise<Map<string, unknown>>;
  list(options: { prefix?: string; startAfter?: string; start?: string; limit?: number }): Promise<Map<string, unknown>>;
  put(entries: Record<string, unknown>): Promise<void>;
  delete(keys: string[]): Promise<number>;
}

/** The platform takes at most so many keys in one request. */
const AT_ONCE = 128;

/** A value has 128 KiB on the key-value form; the revision and the wrapping need a little of it. */
const MAX_VALUE_BYTES = 127 * 1024;

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  // Only the one object reaches its storage.
  shared: "process",
  durability: "disk",
  evictable: false,
  maxValueBytes: MAX_VALUE_BYTES,
};

/** A store in the storage of a Durable Object: `durableObjectStore(ctx.storage)`. */
export function durableObjectStore(storage: DurableStorage): Store {
  if (typeof storage?.get !== "function" || typeof storage.transaction !== "function") {
    throw new LockgateError("OPTIONS", "that is no Durable Object storage", { hint: "durableObjectStore(ctx.storage)" });
  }
  const within = async <T>(work: (txn: Transaction) => Promise<T>): Promise<T> => {
    try {
      return await storage.transaction(work);
    } catch (error) {
      throw fromPlatform(error);
    }
  };
  return {
    name: "Durable Object",
    capabilities: CAPABILITIES,
    get: (keys) => within((txn) => get(txn, keys)),
    list: (prefix, page = {}) => within((txn) => list(txn, prefix, page)),
    commit: (batch) => within((txn) => commit(txn, batch)),
  };
}

async function get(txn: Transaction, keys: readonly string[]): Promise<(StoredRecord | null)[]> {
  const found = new Map<string, unknown>();
  for (const some of pieces([...new Set(keys)])) for (const [key, record] of await txn.get(some)) found.set(key, record);
  return keys.map((key) => (found.has(key) ? copyOf(found.get(key)) : null));
}

async function list(txn: Transaction, prefix: string, { after, limit, keysOnly }: Page): Promise<Listed[]> {
  // The platform refuses to start before the prefix.
  const from = after === undefined || after < prefix ? {} : { startAfter: after };
  if (from.startAfter !== undefined && !from.startAfter.startsWith(prefix)) return [];
  const found = await txn.list({ prefix, ...from, ...(limit === undefined ? {} : { limit }) });
  return [...found].map(([key, record]) => {
    const { value, revision } = copyOf(record);
    return { key, value: keysOnly ? new Uint8Array() : value, revision };
  });
}

async function commit(txn: Transaction, batch: Batch): Promise<"ok" | "conflict"> {
  const { expect, revision, put, remove, removePrefix = [] } = batch;
  if (expect !== undefined) {
    const [found] = await get(txn, [expect.key]);
    if ((found?.revision ?? null) !== expect.revision) return "conflict";
  }
  const gone: string[] = [...remove];
  for (const prefix of removePrefix) gone.push(...(await txn.list({ prefix })).keys());
  for (const some of pieces(gone)) await txn.delete(some);
  for (const some of pieces(put)) {
    await txn.put(Object.fromEntries(some.map(({ key, value }) => [key, { revision, value: value.slice() }])));
  }
  return "ok";
}

function pieces<T>(list: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(list.length / AT_ONCE) }, (_, n) => list.slice(n * AT_ONCE, (n + 1) * AT_ONCE));
}

/** The storage may hand out what it has in its cache. */
function copyOf(record: unknown): StoredRecord {
  const { value, revision } = (record ?? {}) as Partial<StoredRecord>;
  if (value instanceof Uint8Array && typeof revision === "string") return { value: value.slice(), revision };
  throw new LockgateError("STORE_CORRUPT", "a record in the storage was not written by this store", { hint: "give the agent an object of its own" });
}

function fromPlatform(error: unknown): LockgateError {
  if (LockgateError.isInstance(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const failed = (code: ConstructorParameters<typeof LockgateError>[0], hint: string): LockgateError =>
    new LockgateError(code, `the storage failed: ${message}`, { hint, cause: error });
  if (/SQLITE_FULL|quota|storage limit/i.test(message)) return failed("STORE_QUOTA", "this object has used up its storage");
  if (/cannot be larger|too large|SQLITE_TOOBIG|exceeds/i.test(message)) return failed("STATE_TOO_LARGE", "values have a limit here: keep large content elsewhere");
  return failed("STORE_UNAVAILABLE", "the platform may have reset the object: try again");
}
