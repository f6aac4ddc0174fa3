// lockgate/inline: the wasm is inside the JavaScript, for extensions, file:// pages and other places that cannot fetch.

import { createAgentWith } from "../agent/create.js";
import type * as Public from "../index.js";
import { indexedDbWith } from "../stores/indexed-db.js";
import { WASM } from "../inline-wasm.js";
import { localStorageWith } from "../stores/local-storage.js";
import { guardedBy } from "../runtime/ending.js";
import { exitSignals } from "../runtime/process-signals.js";
import { memoryStore as memory } from "../stores/memory.js";
import { compileBytes, inflate } from "./compile.js";

export * from "../index.js";

const load = async (): Promise<WebAssembly.Module> => compileBytes(await inflate(WASM), "the wasm inside lockgate/inline");

/** As in `lockgate`. */
export const indexedDbStore: typeof Public.indexedDbStore = indexedDbWith(load);

/** As in `lockgate`. */
export const localStorageStore: typeof Public.localStorageStore = localStorageWith(load);

/** As in `lockgate`. Without a `store`, sessions are kept in IndexedDB, or in memory if there is no IndexedDB. */
export const createAgent: typeof Public.createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memory()), guardedBy(exitSignals()));
