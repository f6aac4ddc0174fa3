// The package in an edge worker: imports the wasm file, because a worker must not compile bytes.

import module from "../core.wasm";

import { createAgentWith } from "../agent/create.js";
import { indexedDbWith } from "../stores/indexed-db.js";
import { localStorageWith } from "../stores/local-storage.js";
import { memoryStore } from "../stores/memory.js";

export * from "../index.js";

const load = (): WebAssembly.Module => module;

/** See `index.ts`. */
export const indexedDbStore = indexedDbWith(load);
/** See `index.ts`. */
export const localStorageStore = localStorageWith(load);
/** See `index.ts`. Without a `store`, sessions are kept in memory. */
export const createAgent = createAgentWith(load, memoryStore);
