// What a store is, for whoever writes one.

/**
 * What a store must do; everything else (state, log, index) is built on these three.
 * Keys come ready-encoded: parts of [a-z0-9.-] joined by /, at most 512 bytes; values are bytes (UTF-8 JSON).
 * The first two parts are whose the record is: all keys and prefixes of a batch have the same two, so a store may lay itself out by them.
 */
export interface Store {
  /** Names it in warnings and reports. */
  readonly name: string;
  /** What it promises. */
  readonly capabilities: StoreCapabilities;
  /** The record under each key, in the order asked, or null. */
  get(keys: readonly string[]): Promise<readonly (StoredRecord | null)[]>;
  /** Records whose key begins with `prefix`, in key order; `after` is exclusive. */
  list(
    prefix: string,
    options?: { readonly after?: string; readonly limit?: number; readonly keysOnly?: boolean },
  ): Promise<readonly (StoredRecord & { readonly key: string })[]>;
  /** The whole batch or nothing; removes are applied before puts. With `expect`, only if that key's revision is still the one named (null is absent); otherwise "conflict". */
  commit(batch: Batch): Promise<"ok" | "conflict">;
  /** Lets go of whatever it holds. */
  close?(): Promise<void>;
}

/** The bytes under a key, and the revision of the batch that put them. */
export interface StoredRecord {
  readonly value: Uint8Array;
  readonly revision: string;
}

/** Changes that are made all at once or not at all. */
export interface Batch {
  readonly expect?: { readonly key: string; readonly revision: string | null };
  /** What every put is stamped with. */
  readonly revision: string;
  readonly put: readonly { readonly key: string; readonly value: Uint8Array }[];
  readonly remove: readonly string[];
  readonly removePrefix?: readonly string[];
}

/** What a store promises; an agent refuses one that promises too little. */
export interface StoreCapabilities {
  readonly atomic: boolean;
  readonly compareAndSet: boolean;
  readonly shared: "process" | "origin" | "host" | "cluster";
  readonly durability: "none" | "process" | "disk";
  readonly evictable: boolean;
  readonly maxValueBytes: number | null;
}

/** How safely a store keeps what it is given; `warnings` are sentences for people. */
export interface StorageReport {
  readonly store: string;
  readonly durability: "durable" | "may-be-evicted" | "memory-only";
  /** Whether tabs, or processes, that use one session wait for each other. */
  readonly crossTab: boolean;
  /** Bytes of the origin, where the browser tells. */
  readonly usage: number | null;
  readonly quota: number | null;
  readonly warnings: readonly string[];
}
