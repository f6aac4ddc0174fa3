// `indexedDbStore`: checks its arguments. The store itself is written in Rust.

import { LockgateError } from "../errors.js";
import type { indexedDbStore } from "../index.js";
import { ownStore } from "./rust-store.js";
import type { StoreCapabilities } from "../types.js";
import type { Load } from "../runtime/wasm.js";

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
      throw new LockgateError("OPTIONS", "indexedDbStore needs a name, and durability strict or relaxed", {
        hint: 'indexedDbStore("my-app", { durability: "strict" })',
      });
    }
    // With relaxed durability the browser writes to the disk a moment later. Only a power cut can lose such a write.
    const capabilities: StoreCapabilities = { ...CAPABILITIES, durability: durability === "strict" ? "disk" : "process" };
    return ownStore(load, { indexedDb: { name, durability } }, `IndexedDB ${JSON.stringify(name)}`, capabilities);
  };
}
