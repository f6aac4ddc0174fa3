// The public surface of the package. Functions that need the wasm are only declared here: `entry/` has one version for each host.

import type { Agent, AgentOptions, Store } from "./types.js";

/** Loads the wasm once per realm (no separate init step) and checks the options. Bad options reject with code OPTIONS. Uses no I/O, timers or random numbers before the first call, so a Worker can call it at the top level. */
export declare function createAgent(options: AgentOptions): Promise<Agent>;

/** A store in this origin's IndexedDB. It is the default in a page or worker. `strict` durability (the default) waits for the disk. */
export declare function indexedDbStore(name?: string, options?: { readonly durability?: "strict" | "relaxed" }): Store;

/** A store in this origin's localStorage: a few megabytes, only in pages. A browser that is killed loses the last writes. Prefer indexedDbStore. */
export declare function localStorageStore(name?: string): Store;

export { aiSdkModel } from "./model/ai-sdk-model.js";
export { demoModel } from "./model/demo.js";
export { LockgateError } from "./errors.js";
export { memoryStore } from "./stores/memory.js";
export { customModel } from "./model/custom.js";
export { statePersistence } from "./session/persistence.js";
export { anthropic, gemini, openai } from "./model/providers.js";
export { textOf } from "./values/text.js";
export { tool } from "./turn/tool.js";
export type * from "./types.js";
