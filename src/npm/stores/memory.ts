// A store in memory. It is written in JavaScript, so that it survives a crash of the wasm.

import { marked } from "../values/internals.js";
import type { SyncStore } from "../values/internals.js";
import { lowerBound, upperBound } from "../values/sorted-keys.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "process",
  durability: "none",
  evictable: true,
  maxValueBytes: null,
};

/** A store in the memory of this process: for tests, and for users who want nothing stored. */
export function memoryStore(): Store {
  const records = new Records();
  const sync: SyncStore = {
    get: (keys) => keys.map((key) => records.get(key)),
    list: (prefix, page) => records.list(prefix, page?.after, page?.limit),
    commit: (batch) => records.commit(batch),
  };
  // Bytes are copied in and out, so a caller cannot change stored records.
  const store: Store = {
    name: "memory",
    capabilities: CAPABILITIES,
    get: async (keys) => keys.map((key) => records.get(key)).map((record) => record && copy(record)),
    list: async (prefix, page) => records.list(prefix, page?.after, page?.limit).map(copy),
    commit: async (batch) => records.commit({ ...batch, put: batch.put.map(copy) }),
  };
  return marked<Store>(store, { kind: "store", sync });
}

/** Records in key order. Keys are kept folder by folder, so that a change is cheap with any number of keys. */
class Records {
  readonly #folders = new Map<string, { readonly names: string[]; readonly records: Map<string, StoredRecord> }>();
  readonly #order: string[] = [];

  get(key: string): StoredRecord | null {
    return this.#folders.get(folderOf(key))?.records.get(key) ?? null;
  }

  list(prefix: string, after: string | undefined, limit = Infinity): (StoredRecord & { key: string })[] {
    const found: (StoredRecord & { key: string })[] = [];
    for (const folder of this.#foldersOf(prefix)) {
      const { names, records } = this.#folders.get(folder)!;
      const start = Math.max(lowerBound(names, prefix), after === undefined ? 0 : upperBound(names, after));
      const end = Math.min(names.length, start + limit);
      for (let index = start; index < end; index++) {
        const key = names[index]!;
        if (!key.startsWith(prefix)) break;
        found.push({ key, ...records.get(key)! });
      }
    }
    // Folders are sorted, but keys of one folder may sort between keys of another.
    found.sort((one, other) => (one.key < other.key ? -1 : 1));
    return found.length > limit ? found.slice(0, limit) : found;
  }

  commit(batch: Batch): "ok" | "conflict" {
    const { expect, revision } = batch;
    if (expect !== undefined && (this.get(expect.key)?.revision ?? null) !== expect.revision) return "conflict";
    for (const prefix of batch.removePrefix ?? []) {
      for (const { key } of this.list(prefix, undefined)) this.#remove(key);
    }
    for (const key of batch.remove) this.#remove(key);
    for (const { key, value } of batch.put) this.#put(key, { value, revision });
    return "ok";
  }

  /** The folders that may have keys with this prefix: the prefix's own folder, and the folders below it. */
  *#foldersOf(prefix: string): Iterable<string> {
    const own = folderOf(prefix);
    if (this.#folders.has(own)) yield own;
    for (let index = lowerBound(this.#order, prefix); index < this.#order.length; index++) {
      const folder = this.#order[index]!;
      if (!folder.startsWith(prefix)) return;
      if (folder !== own) yield folder;
    }
  }

  #put(key: string, record: StoredRecord): void {
    const name = folderOf(key);
    let folder = this.#folders.get(name);
    if (folder === undefined) {
      folder = { names: [], records: new Map() };
      this.#folders.set(name, folder);
      this.#order.splice(lowerBound(this.#order, name), 0, name);
    }
    if (!folder.records.has(key)) folder.names.splice(lowerBound(folder.names, key), 0, key);
    folder.records.set(key, record);
  }

  #remove(key: string): void {
    const name = folderOf(key);
    const folder = this.#folders.get(name);
    if (folder === undefined || !folder.records.delete(key)) return;
    folder.names.splice(lowerBound(folder.names, key), 1);
    if (folder.names.length > 0) return;
    this.#folders.delete(name);
    this.#order.splice(lowerBound(this.#order, name), 1);
  }
}

function copy<T extends { readonly value: Uint8Array }>(record: T): T {
  return { ...record, value: record.value.slice() };
}

function folderOf(key: string): string {
  return key.slice(0, key.lastIndexOf("/") + 1);
}
