// Stores: what a store must do, and what it reports about itself.

/**
 * Keeps records under keys. State, log and index are built on its three methods.
 * A key consists of parts of [a-z0-9.-] joined by /, and has at most 512 bytes. A value is bytes (UTF-8 JSON).
 * The first two parts of a key name the agent and the user. They are the same in all keys and prefixes of a batch, so a store may
 * keep each pair in a place of its own.
 */
export interface Store {
  /** The name in warnings and reports. */
  readonly name: string;
  /** What the store promises. */
  readonly capabilities: StoreCapabilities;
  /** The record under each key, in the order of `keys`; null where there is none. */
  get(keys: readonly string[]): Promise<readonly (StoredRecord | null)[]>;
  /** The records whose keys begin with `prefix`, in key order, after the key `after`. */
  list(
    prefix: string,
    options?: { readonly after?: string; readonly limit?: number; readonly keysOnly?: boolean },
  ): Promise<readonly (StoredRecord & { readonly key: string })[]>;
  /** Applies the whole batch or nothing. Removes come before puts. With `expect`, the batch is applied only if that key still has that revision (null: no record); otherwise the answer is "conflict". */
  commit(batch: Batch): Promise<"ok" | "conflict">;
  /** What the store knows now about how long its records stay. `storage()` asks for it. Without this method the capabilities answer. */
  report?(): Promise<StoreReport>;
  /** Frees connections, files and the like. */
  close?(): Promise<void>;
}

/** How long the records of a store stay. `warnings` are sentences for people. */
export interface StoreReport {
  /** As in `StorageReport`. */
  readonly durability: StorageReport["durability"];
  /** What may be lost, and the setting to change. Empty if there is nothing to say. */
  readonly warnings: readonly string[];
}

/** A record: its bytes, and the revision of the batch that put it. */
export interface StoredRecord {
  /** The bytes, as they were put. */
  readonly value: Uint8Array;
  /** The revision of the batch that put the record. */
  readonly revision: string;
}

/** Changes that are applied all at once or not at all. */
export interface Batch {
  /** The condition: this key must have this revision. Null: it must have no record. Absent: no condition. */
  readonly expect?: { readonly key: string; readonly revision: string | null };
  /** The revision of every record that this batch puts. */
  readonly revision: string;
  /** The records to write. They replace records with the same keys. */
  readonly put: readonly { readonly key: string; readonly value: Uint8Array }[];
  /** The keys to remove. A key without a record is no error. */
  readonly remove: readonly string[];
  /** The prefixes whose keys are removed. Default: none. */
  readonly removePrefix?: readonly string[];
}

/** What a store promises. An agent refuses a store that promises too little. */
export interface StoreCapabilities {
  /** A batch is applied as a whole or not at all, also after a crash. An agent requires it. */
  readonly atomic: boolean;
  /** `expect` is compared in the same step in which the batch is applied. An agent requires it if `shared` is "host" or "cluster". */
  readonly compareAndSet: boolean;
  /** Who may use the same records: this process only, the pages and workers of one web origin, the processes of one machine, or any machine. */
  readonly shared: "process" | "origin" | "host" | "cluster";
  /** What a record survives after its commit. "none": not the end of the process. "process": the end of the process. "disk": a power cut too. */
  readonly durability: "none" | "process" | "disk";
  /** Whether records may disappear by themselves, for example because the browser needs space. */
  readonly evictable: boolean;
  /** The largest value, at least 64. The engine splits larger ones. Null: no limit. */
  readonly maxValueBytes: number | null;
}

/** How safely a store keeps its data. `warnings` are sentences for people. */
export interface StorageReport {
  /** The name of the store. */
  readonly store: string;
  /**
   * "durable": an acknowledged turn stays, also after a power cut. "may-be-evicted": the host may delete records.
   * "memory-only": they end with the page, worker or process. "not-durable": a crash or a power cut loses the last turns, or all.
   * "unknown": the store cannot tell, or may not be asked.
   */
  readonly durability: "durable" | "may-be-evicted" | "memory-only" | "not-durable" | "unknown";
  /** Whether tabs or processes that use the same session wait for each other. */
  readonly crossTab: boolean;
  /** Bytes that the origin uses, if the browser reports them. */
  readonly usage: number | null;
  /** Bytes that the origin may use, if the browser reports them. */
  readonly quota: number | null;
  /** What may be lost or may go wrong, and what helps. Empty if there is nothing to say. */
  readonly warnings: readonly string[];
}
