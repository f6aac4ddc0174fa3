// In Node: the wasm file is read from beside this module.

import { readFileSync } from "node:fs";

import { createAgentWith } from "../agent.js";
import { indexedDbWith } from "../indexed-db.js";
import { localStorageWith } from "../local-storage.js";
import { fileStore } from "../stores/node.js";

export * from "../index.js";

const load = (): WebAssembly.Module => new WebAssembly.Module(readFileSync(new URL("../core.wasm", import.meta.url)));

export const indexedDbStore = indexedDbWith(load);
export const localStorageStore = localStorageWith(load);
export const createAgent = createAgentWith(load, () => fileStore("./.lockgate"));
