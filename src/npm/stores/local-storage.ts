// `localStorageStore`: checks its arguments. The store itself is written in Rust.

import { LockgateError } from "../errors.js";
import type { localStorageStore } from "../index.js";
import { ownStore } from "./rust-store.js";
import type { StoreCapabilities } from "../types.js";
import type { Load } from "../runtime/wasm.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "origin",
  // A browser that is killed loses the last writes.
  durability: "none",
  evictable: true,
  maxValueBytes: null,
};

/** Makes `localStorageStore` for one way of loading the wasm. */
export function localStorageWith(load: Load): typeof localStorageStore {
  return (name = "lockgate") => {
    if (typeof name !== "string" || name === "" || /\p{Surrogate}/u.test(name)) {
      throw new LockgateError("OPTIONS", "localStorageStore needs a name", { hint: 'localStorageStore("my-app")' });
    }
    return ownStore(load, { localStorage: { name } }, `localStorage ${JSON.stringify(name)}`, CAPABILITIES);
  };
}
