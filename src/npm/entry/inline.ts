// lockgate/inline: the wasm is inside the JavaScript, for extensions, file:// pages and wherever nothing can be fetched.

import { createAgentWith } from "../agent.js";
import type * as Public from "../index.js";
import { indexedDbWith } from "../indexed-db.js";
import { WASM } from "../inline-wasm.js";
import { localStorageWith } from "../local-storage.js";
import { memoryStore as memory } from "../memory.js";
import { compiled, inflated } from "./compile.js";

export * from "../index.js";

const load = async (): Promise<WebAssembly.Module> => compiled(await inflated(WASM), "the wasm inside lockgate/inline");

/** As in `lockgate`. */
export const indexedDbStore: typeof Public.indexedDbStore = indexedDbWith(load);

/** As in `lockgate`. */
export const localStorageStore: typeof Public.localStorageStore = localStorageWith(load);

/** As in `lockgate`; without a `store`, sessions are in IndexedDB, or where there is none in memory. */
export const createAgent: typeof Public.createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memory()));
