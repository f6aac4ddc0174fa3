// In a page or a web worker: the wasm file is fetched from beside this module.

import { createAgentWith } from "../agent.js";
import { indexedDbWith } from "../indexed-db.js";
import { localStorageWith } from "../local-storage.js";
import { memoryStore } from "../memory.js";
import { load } from "./load-browser.js";

export * from "../index.js";

export const indexedDbStore = indexedDbWith(load);
export const localStorageStore = localStorageWith(load);
export const createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memoryStore()));
