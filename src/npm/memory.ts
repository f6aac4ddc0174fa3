// A store that forgets. It lives in JavaScript, so that it survives a crash of the wasm.

import { marked } from "./kinds.js";
import { place, placeAfter } from "./sorted.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "./types.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "process",
  durability: "none",
  evictable: true,
  maxValueBytes: null,
};

/** A store in this process's memory: for tests, and for whoever wants nothing kept. */
export function memoryStore(): Store {
  const records = new Records();
  const atHand = {
    get: (keys: readonly string[]) => keys.map((key) => records.get(key)),
    list: (prefix: string, page: { readonly after?: string; readonly limit?: number } = {}) =>
      records.list(prefix, page.after, page.limit ?? Infinity),
    commit: (batch: Batch) => records.commit(batch),
  };
  const store: Store = {
    name: "memory",
    capabilities: CAPABILITIES,
    get: async (keys) => atHand.get(keys),
    list: async (prefix, page) => atHand.list(prefix, page),
    commit: async (batch) => atHand.commit(batch),
  };
  return marked<Store>(store, { kind: "store", atHand });
}

/** Records in key order. Keys are kept folder by folder, so that a change costs little however many there are. */
class Records {
  readonly #folders = new Map<string, { readonly names: string[]; readonly records: Map<string, StoredRecord> }>();
  readonly #order: string[] = [];

  get(key: string): StoredRecord | null {
    const record = this.#folders.get(folderOf(key))?.records.get(key);
    return record === undefined ? null : copy(record);
  }

  list(prefix: string, after: string | undefined, limit: number): (StoredRecord & { key: string })[] {
    const found: (StoredRecord & { key: string })[] = [];
    for (const folder of this.#foldersOf(prefix)) {
      const { names, records } = this.#folders.get(folder)!;
      const start = Math.max(place(names, prefix), after === undefined ? 0 : placeAfter(names, after));
      const end = Math.min(names.length, start + limit);
      for (let index = start; index < end; index++) {
        const key = names[index]!;
        if (!key.startsWith(prefix)) break;
        found.push({ key, ...copy(records.get(key)!) });
      }
    }
    // Folders are in order, but a folder's keys may stand between those of its neighbours.
    found.sort((one, other) => (one.key < other.key ? -1 : 1));
    return found.length > limit ? found.slice(0, limit) : found;
  }

  commit(batch: Batch): "ok" | "conflict" {
    const { expect, revision } = batch;
    if (expect !== undefined && (this.get(expect.key)?.revision ?? null) !== expect.revision) return "conflict";
    for (const prefix of batch.removePrefix ?? []) {
      for (const { key } of this.list(prefix, undefined, Infinity)) this.#remove(key);
    }
    for (const key of batch.remove) this.#remove(key);
    for (const { key, value } of batch.put) this.#put(key, { value: value.slice(), revision });
    return "ok";
  }

  /** The folders that may hold keys of this prefix: its own, and those below it. */
  *#foldersOf(prefix: string): Iterable<string> {
    const own = folderOf(prefix);
    if (this.#folders.has(own)) yield own;
    for (let index = place(this.#order, prefix); index < this.#order.length; index++) {
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
      this.#order.splice(place(this.#order, name), 0, name);
    }
    if (!folder.records.has(key)) folder.names.splice(place(folder.names, key), 0, key);
    folder.records.set(key, record);
  }

  #remove(key: string): void {
    const name = folderOf(key);
    const folder = this.#folders.get(name);
    if (folder === undefined || !folder.records.delete(key)) return;
    folder.names.splice(place(folder.names, key), 1);
    if (folder.names.length > 0) return;
    this.#folders.delete(name);
    this.#order.splice(place(this.#order, name), 1);
  }
}

/** Bytes are copied in and out, so nobody can change what is kept. */
function copy(record: StoredRecord): StoredRecord {
  return { value: record.value.slice(), revision: record.revision };
}

function folderOf(key: string): string {
  return key.slice(0, key.lastIndexOf("/") + 1);
}
