// The IndexedDB store: Rust keeps it; this is its public face.

import type { CoreStore } from "./core.js";
import { LockgateError } from "./errors.js";
import type { indexedDbStore } from "./index.js";
import { marked } from "./kinds.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "./types.js";
import { loadEngine } from "./wasm.js";
import type { Instance, Load } from "./wasm.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "origin",
  durability: "disk",
  evictable: true,
  maxValueBytes: null,
};

/** Makes `indexedDbStore` for one way of loading the wasm. */
export function indexedDbWith(load: Load): typeof indexedDbStore {
  return (name = "lockgate", options = {}) => {
    const durability = options.durability ?? "strict";
    if (typeof name !== "string" || name === "" || (durability !== "strict" && durability !== "relaxed")) {
      throw new LockgateError("OPTIONS", "an IndexedDB store has a name, and strict or relaxed durability", {
        hint: 'indexedDbStore("my-app", { durability: "strict" })',
      });
    }
    const config = { name, durability };
    const direct = directUse(load, config);
    const store: Store = {
      name: `IndexedDB ${JSON.stringify(name)}`,
      capabilities: CAPABILITIES,
      get: (keys) => direct((core) => core.get([...keys])) as Promise<(StoredRecord | null)[]>,
      list: (prefix, page = {}) =>
        direct((core) => core.list(prefix, page.after, page.limit)) as Promise<(StoredRecord & { key: string })[]>,
      commit: (batch: Batch) => direct((core) => core.commit(batch)) as Promise<"ok" | "conflict">,
    };
    return marked<Store>(store, { kind: "store", indexedDb: config });
  };
}

/** An agent has its own handle in the wasm; whoever calls the store's methods directly gets one here. */
function directUse(load: Load, config: unknown) {
  let opened: { readonly instance: Instance; readonly core: CoreStore } | undefined;
  return async (use: (core: CoreStore) => ReturnType<CoreStore["get"]>): Promise<unknown> => {
    const instance = (await loadEngine(load)).instance();
    if (opened?.instance !== instance) {
      const core = instance.enter(() => instance.core.OpenStore.indexedDb(JSON.stringify(config)));
      opened = { instance, core: instance.own(core) };
    }
    const { core } = opened;
    return instance.run(() => use(core));
  };
}
