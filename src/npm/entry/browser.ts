// The package in a page or a web worker: fetches the wasm files that lie beside this module.

import { createAgentWith } from "../agent/create.js";
import { indexedDbWith } from "../stores/indexed-db.js";
import { localStorageWith } from "../stores/local-storage.js";
import { memoryStore } from "../stores/memory.js";
import { load } from "./load-browser.js";

export * from "../index.js";

/** See `index.ts`. */
export const indexedDbStore = indexedDbWith(load);
/** See `index.ts`. */
export const localStorageStore = localStorageWith(load);
/** See `index.ts`. Without a `store`, sessions are kept in IndexedDB, or in memory if there is no IndexedDB. */
export const createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memoryStore()));
