// Turns a user's middleware into the object that src/wasm expects.

import { fromCore, isCoreError } from "../errors.js";
import type { JsHook } from "../glue.js";
import type { Calls } from "../host/ports.js";
import { markSignal, toolSession, runInside } from "./reentrancy.js";
import type { MessageCache } from "../call/message-cache.js";
import { MAX_CHARS } from "../values/json.js";
import { wellFormed } from "../values/text.js";
import type { Middleware, ModelRequest, RunContext, ToolContext } from "../types.js";

const POINTS = ["onCall", "systemPrompt", "reviseContext", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"] as const;
type Point = (typeof POINTS)[number];

/** The object for one middleware. */
export function hookPort(calls: Calls, cache: MessageCache, middleware: Middleware): JsHook {
  // The functions are read once: if the user changes the object later, the agent stays the same.
  const hooks = new Map(POINTS.filter((point) => middleware[point] !== undefined).map((point) => [point, middleware[point]]));
  return {
    name: middleware.name,
    points: [...hooks.keys()],
    known: (lineage, unchanged) => cache.known(lineage, unchanged),
    at(point: Point, given, tag, toolCallId, lineage, added) {
      const value = JSON.parse(given) as unknown;
      const messages = point === "beforeModel" || point === "reviseContext" ? cache.extend(lineage, added) : undefined;
      const run = async (): Promise<string> => {
        // Wait until Rust is off the stack, because the user's function may call into it.
        await null;
        const call = calls.get(tag);
        const context = call?.contextOf(cache, toolCallId) ?? ({} as ToolContext);
        const shown = messages === undefined ? outcomeOf(value, context) : point === "reviseContext" ? messages : { ...(value as ModelRequest), messages };
        const hook = hooks.get(point) as ((value: unknown, context: RunContext) => unknown) | undefined;
        const session = toolSession(calls, call?.slot ?? { sessionId: "" });
        markSignal(context.signal, session);
        const answer = await runInside(session, () => hook?.call(middleware, shown, context));
        const text = JSON.stringify(answer ?? null);
        if (text.length > MAX_CHARS) throw new Error(`its answer has ${text.length} characters; the limit is ${MAX_CHARS}`);
        return wellFormed(text, () => call?.warn("text", `half a character was replaced in the answer of the middleware "${middleware.name}"`));
      };
      return run();
    },
  };
}

/** The outcome that `onEnd` gets, with a LockgateError in place of Rust's error. Other values stay the same. */
function outcomeOf(value: unknown, { sessionId, userId, callId }: RunContext): unknown {
  const error = typeof value === "object" && value !== null && "error" in value ? value.error : undefined;
  if (!isCoreError(error)) return value;
  const slot = userId === undefined ? { sessionId } : { sessionId, userId };
  return { error: fromCore(error, { slot, callId, partial: error.partial }) };
}
