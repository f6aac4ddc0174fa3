// The IndexedDB store: Rust keeps it; this is its public face.

import { LockgateError } from "./errors.js";
import type { indexedDbStore } from "./index.js";
import { ownStore } from "./own-store.js";
import type { StoreCapabilities } from "./types.js";
import type { Load } from "./wasm.js";

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
    // Relaxed: the browser has it, the disk soon; only a power cut comes between.
    const capabilities: StoreCapabilities = { ...CAPABILITIES, durability: durability === "strict" ? "disk" : "process" };
    return ownStore(load, { indexedDb: { name, durability } }, `IndexedDB ${JSON.stringify(name)}`, capabilities);
  };
}
