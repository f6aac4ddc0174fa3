// The whole public surface. Each host loads the wasm in its own way, so `entry/` has what needs it.

import type { CreateAgent } from "./agent.js";
import type { IndexedDbStore } from "./indexed-db.js";

/** Loads the wasm once per realm (no separate init step) and checks the options. Bad options reject with code OPTIONS. No I/O, timers or random numbers before the first call, so it may stand at a Worker's top level. */
export declare const createAgent: CreateAgent;

/** A store in this origin's IndexedDB; the default in a page or worker. */
export declare const indexedDbStore: IndexedDbStore;

export { LockgateError } from "./errors.js";
export { memoryStore } from "./memory.js";
export { demoModel } from "./demo.js";
export { customModel } from "./models.js";
export { textOf } from "./text.js";
export { tool } from "./tool.js";
export type * from "./types.js";
