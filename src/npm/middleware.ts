// Hooks that users write, each in the shape that src/wasm expects.

import { fromCore, isCoreError } from "./errors.js";
import type { Calls } from "./host.js";
import { comesFrom, insideOf, within } from "./inside.js";
import type { Mirrors } from "./mirror.js";
import { wellFormed } from "./text.js";
import type { Middleware, ModelRequest, RunContext, ToolContext } from "./types.js";

const POINTS = ["onCall", "systemPrompt", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"] as const;
type Point = (typeof POINTS)[number];

/** What Rust says of the call that a hook looks at. */
interface Run {
  readonly tag: number;
  readonly tool: string;
  readonly lineage: number;
  readonly added: string;
}

export interface HookPort {
  readonly name: string;
  readonly points: readonly string[];
  known(lineage: number, unchanged: number): number;
  at(point: Point, given: string, run: Run): Promise<string>;
}

/** The port of one middleware. */
export function hookPort(calls: Calls, mirrors: Mirrors, middleware: Middleware): HookPort {
  // Functions are read once: what a user changes on the object later does not change the agent.
  const hooks = new Map(POINTS.filter((point) => middleware[point] !== undefined).map((point) => [point, middleware[point]]));
  return {
    name: middleware.name,
    points: [...hooks.keys()],
    known: (lineage, unchanged) => mirrors.known(lineage, unchanged),
    at(point, given, { tag, tool, lineage, added }) {
      const value = JSON.parse(given) as unknown;
      const messages = point === "beforeModel" ? mirrors.extend(lineage, added) : undefined;
      const run = async (): Promise<string> => {
        // Not while Rust is on the stack: what a user wrote may call into it.
        await null;
        const call = calls.get(tag);
        const context = call?.contextOf(mirrors, tool) ?? ({} as ToolContext);
        const shown = messages === undefined ? outcomeOf(value, context) : { ...(value as ModelRequest), messages };
        const hook = hooks.get(point) as ((value: unknown, context: RunContext) => unknown) | undefined;
        const inside = insideOf(calls, call?.slot ?? { sessionId: "" });
        comesFrom(context.signal, inside);
        const answer = await within(inside, () => hook?.call(middleware, shown, context));
        return wellFormed(JSON.stringify(answer ?? null), () => call?.warn("text", `half a character was replaced in the answer of the middleware "${middleware.name}"`));
      };
      return run();
    },
  };
}

/** The error of an outcome is one that users know; everything else is as it is. */
function outcomeOf(value: unknown, { sessionId, userId, callId }: RunContext): unknown {
  const error = typeof value === "object" && value !== null && "error" in value ? value.error : undefined;
  if (!isCoreError(error)) return value;
  const slot = userId === undefined ? { sessionId } : { sessionId, userId };
  return { error: fromCore(error, { slot, callId, partial: error.partial }) };
}
