// In Node: the wasm file is read from beside this module.

import { createAgentWith } from "../agent.js";
import { indexedDbWith } from "../indexed-db.js";
import { localStorageWith } from "../local-storage.js";
import { fileStore } from "../stores/node.js";
import { load } from "./load-node.js";

export * from "../index.js";

export const indexedDbStore = indexedDbWith(load);
export const localStorageStore = localStorageWith(load);
export const createAgent = createAgentWith(load, () => fileStore("./.lockgate"));
