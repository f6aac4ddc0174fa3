// The package in Node: reads the wasm file that lies beside this module.

import { createAgentWith } from "../agent/create.js";
import { indexedDbWith } from "../stores/indexed-db.js";
import { localStorageWith } from "../stores/local-storage.js";
import { fileStore } from "../stores/node.js";
import { guardedBy } from "../runtime/ending.js";
import { exitSignals } from "../runtime/process-signals.js";
import { load } from "./load-node.js";

export * from "../index.js";

/** See `index.ts`. */
export const indexedDbStore = indexedDbWith(load);
/** See `index.ts`. */
export const localStorageStore = localStorageWith(load);
/** See `index.ts`. Without a `store`, sessions are kept in files under ./.lockgate. */
export const createAgent = createAgentWith(load, () => fileStore("./.lockgate"), guardedBy(exitSignals()));
