// In an edge worker: the wasm file is imported, because compiling bytes is forbidden there.

import module from "../core.wasm";

import { createAgentWith } from "../agent.js";
import { indexedDbWith } from "../indexed-db.js";
import { localStorageWith } from "../local-storage.js";
import { memoryStore } from "../memory.js";

export * from "../index.js";

const load = (): WebAssembly.Module => module;

export const indexedDbStore = indexedDbWith(load);
export const localStorageStore = localStorageWith(load);
export const createAgent = createAgentWith(load, memoryStore);
