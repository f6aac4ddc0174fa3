// The whole public surface. Each host loads the wasm in its own way, so `entry/` has what needs it.

import type { Agent, AgentOptions, Store } from "./types.js";

/** Loads the wasm once per realm (no separate init step) and checks the options. Bad options reject with code OPTIONS. No I/O, timers or random numbers before the first call, so it may stand at a Worker's top level. */
export declare function createAgent(options: AgentOptions): Promise<Agent>;

/** A store in this origin's IndexedDB; the default in a page or worker. `strict` durability (the default) waits for the disk. */
export declare function indexedDbStore(name?: string, options?: { readonly durability?: "strict" | "relaxed" }): Store;

/** A store in this origin's localStorage: a few megabytes, only in pages, and a browser that is killed loses the last writes. Prefer indexedDbStore. */
export declare function localStorageStore(name?: string): Store;

export { aiSdkModel } from "./ai-sdk-model.js";
export { demoModel } from "./demo.js";
export { LockgateError } from "./errors.js";
export { memoryStore } from "./memory.js";
export { customModel } from "./models.js";
export { statePersistence } from "./persistence.js";
export { anthropic, gemini, openai } from "./providers.js";
export { textOf } from "./text.js";
export { tool } from "./tool.js";
export type * from "./types.js";
