// A store in the storage of a Durable Object, either key-value or SQLite.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types/store.js";
import type { ListedRecord, Page } from "./keys.js";

/** The part of a Durable Object's `ctx.storage` that we use. */
export interface DurableStorage {
  /** The values of the keys that exist, at most 128 keys. */
  get(keys: string[]): Promise<Map<string, unknown>>;
  /** Runs `work` in a transaction: all of its changes are stored, or none. */
  // `any`, because the platform's own types describe its transactions in several ways.
  transaction<T>(work: (txn: any) => Promise<T>): Promise<T>;
}

/** The part of a transaction that we use. */
interface Transaction {
  get(keys: string[]): Promise<Map<string, unknown>>;
  list(options: { prefix?: string; startAfter?: string; start?: string; limit?: number }): Promise<Map<string, unknown>>;
  put(entries: Record<string, unknown>): Promise<void>;
  delete(keys: string[]): Promise<number>;
}

/** The platform's limit of keys in one request. */
const MAX_KEYS = 128;

/** A value of key-value storage has at most 128 KiB. The revision and the encoding need a part of that. */
const MAX_VALUE_BYTES = 127 * 1024;

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  // Only the object itself can use its storage.
  shared: "process",
  durability: "disk",
  evictable: false,
  maxValueBytes: MAX_VALUE_BYTES,
};

/** A store in the storage of a Durable Object: `durableObjectStore(ctx.storage)`. */
export function durableObjectStore(storage: DurableStorage): Store {
  if (typeof storage?.get !== "function" || typeof storage.transaction !== "function") {
    throw new LockgateError("OPTIONS", "durableObjectStore needs the storage of a Durable Object", { hint: "durableObjectStore(ctx.storage)" });
  }
  const transaction = async <T>(work: (txn: Transaction) => Promise<T>): Promise<T> => {
    try {
      return await storage.transaction(work);
    } catch (error) {
      throw fromPlatform(error);
    }
  };
  return {
    name: "Durable Object",
    capabilities: CAPABILITIES,
    get: (keys) => transaction((txn) => get(txn, keys)),
    list: (prefix, page = {}) => transaction((txn) => list(txn, prefix, page)),
    commit: (batch) => transaction((txn) => commit(txn, batch)),
  };
}

async function get(txn: Transaction, keys: readonly string[]): Promise<(StoredRecord | null)[]> {
  const found = new Map<string, unknown>();
  for (const chunk of chunks([...new Set(keys)])) for (const [key, record] of await txn.get(chunk)) found.set(key, record);
  return keys.map((key) => (found.has(key) ? copyOf(found.get(key)) : null));
}

async function list(txn: Transaction, prefix: string, { after, limit, keysOnly }: Page): Promise<ListedRecord[]> {
  // The platform refuses a start before the prefix.
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
  for (const chunk of chunks(gone)) await txn.delete(chunk);
  for (const chunk of chunks(put)) {
    await txn.put(Object.fromEntries(chunk.map(({ key, value }) => [key, { revision, value: value.slice() }])));
  }
  return "ok";
}

function chunks<T>(list: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(list.length / MAX_KEYS) }, (_, n) => list.slice(n * MAX_KEYS, (n + 1) * MAX_KEYS));
}

/** A copy, because the storage may return the object of its cache. */
function copyOf(record: unknown): StoredRecord {
  const { value, revision } = (record ?? {}) as Partial<StoredRecord>;
  if (value instanceof Uint8Array && typeof revision === "string") return { value: value.slice(), revision };
  throw new LockgateError("STORE_CORRUPT", "a record in the storage was not written by this store", { hint: "use a Durable Object only for the agent" });
}

function fromPlatform(error: unknown): LockgateError {
  if (LockgateError.isInstance(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const failed = (code: ConstructorParameters<typeof LockgateError>[0], hint: string): LockgateError =>
    new LockgateError(code, `the storage failed: ${message}`, { hint, cause: error });
  if (/SQLITE_FULL|quota|storage limit/i.test(message)) return failed("STORE_QUOTA", "this object has used up its storage");
  if (/cannot be larger|too large|SQLITE_TOOBIG|exceeds/i.test(message)) return failed("STATE_TOO_LARGE", "Durable Objects limit the size of a value: keep large content elsewhere");
  return failed("STORE_UNAVAILABLE", "the platform may have reset the object: try again");
}
