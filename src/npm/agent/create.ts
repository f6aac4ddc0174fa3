// Makes `createAgent` for one way of loading the wasm.

import type { createAgent } from "../index.js";
import type { MakeEndGuard } from "../runtime/ending.js";
import { pageGuard } from "../runtime/page-end.js";
import { loadEngine } from "../runtime/wasm.js";
import type { Load } from "../runtime/wasm.js";
import type { Store } from "../types.js";
import { AgentHandle } from "./agent.js";
import { checkOptions, isSimple } from "./options.js";
import { isStoreDenied } from "./storage.js";

/** Makes `createAgent`. `makeGuard` is given where signals may end the process. */
export function createAgentWith(load: Load, defaultStore: () => Store, makeGuard?: MakeEndGuard): typeof createAgent {
  return async (options) => {
    const checked = checkOptions(options, defaultStore);
    const [engine, isDenied] = await Promise.all([loadEngine(load), isStoreDenied(checked.store)]);
    if (!isSimple(options)) await engine.whole();
    const agent = new AgentHandle(engine, checked, isDenied, (names, calls) => makeGuard?.(names, calls) ?? pageGuard(() => calls.checkpoint()));
    agent.checkNow();
    return agent;
  };
}
