// The ports that Rust is given: a user's model, tools and store, each in the shape that src/wasm expects.

import type { CallHandle } from "./call.js";
import { insideOf, within } from "./inside.js";
import { storeKind } from "./kinds.js";
import type { ModelKind, ToolKind } from "./kinds.js";
import type { Lock } from "./locks.js";
import { hookPort } from "./middleware.js";
import type { HookPort } from "./middleware.js";
import { Mirrors } from "./mirror.js";
import { pump } from "./pump.js";
import type { Deltas } from "./pump.js";
import { validated } from "./schema.js";
import { wellFormed } from "./text.js";
import { toBlocks } from "./tool.js";
import type { Batch, Middleware, ModelRequest, Msg, Store, ToolContext } from "./types.js";
import type { Instance } from "./wasm.js";

/** The calls under way, by the tag that Rust knows them by. */
export type Calls = ReadonlyMap<number, CallHandle>;

export interface Ports {
  readonly model: unknown;
  readonly store: unknown;
  readonly tools: readonly unknown[];
  readonly hooks: readonly HookPort[];
  readonly lock: Lock;
}

/** The ports of an agent in one instance of the wasm. */
export function portsOf(
  instance: Instance,
  calls: Calls,
  parts: {
    readonly model: ModelKind;
    readonly store: Store;
    readonly tools: readonly ToolKind[];
    readonly middleware: readonly Middleware[];
    readonly lock: Lock;
  },
): Ports {
  // One mirror for all of them: what one has been given, the others have too.
  const mirrors = new Mirrors();
  return {
    model: modelPort(instance, calls, mirrors, parts.model),
    store: storePort(instance, parts.store),
    tools: parts.tools.map((tool) => toolPort(instance, calls, tool)),
    hooks: parts.middleware.map((each) => hookPort(instance, calls, mirrors, each)),
    lock: lockPort(instance, parts.lock),
  };
}

/** A lock that a dead instance lets go of: the next one wants it. */
function lockPort(instance: Instance, lock: Lock): Lock {
  return (name) => {
    const held = lock(name);
    const forget = instance.onCrash(() => held.release());
    const release = (): void => {
      forget();
      held.release();
    };
    return { ready: instance.promise(() => held.ready), release };
  };
}

function modelPort(instance: Instance, calls: Calls, mirrors: Mirrors, own: ModelKind): unknown {
  return {
    id: (tag: number) => (calls.get(tag)?.model ?? own).id,
    known: (lineage: number, unchanged: number) => mirrors.known(lineage, unchanged),
    ask(tag: number, lineage: number, added: string, rest: string): Deltas {
      const messages = mirrors.extend(lineage, JSON.parse(added) as Msg[]);
      const { system, tools, generate } = JSON.parse(rest) as Omit<ModelRequest, "messages">;
      const request: ModelRequest = { system, tools, generate, messages };
      const model = calls.get(tag)?.model ?? own;
      const deltas = pump((options) => model.generate(request, options));
      const forget = instance.onCrash(deltas.cancel);
      return {
        cancel() {
          forget();
          deltas.cancel();
        },
        next() {
          const batch = deltas.next();
          return typeof batch === "string" ? batch : instance.promise(() => batch);
        },
      };
    },
  };
}

function storePort(instance: Instance, store: Store): unknown {
  const atHand = storeKind(store)?.atHand;
  if (atHand !== undefined) return atHand;
  // Functions are read once: what a user changes on the object later does not change the agent.
  const { get, list, commit } = store;
  return {
    get: (keys: string[]) => instance.promise(async () => get.call(store, keys)),
    list: (prefix: string, page: object) => instance.promise(async () => list.call(store, prefix, page)),
    commit: (batch: Batch) => instance.promise(async () => commit.call(store, batch)),
  };
}

function toolPort(instance: Instance, calls: Calls, tool: ToolKind): unknown {
  return {
    run(tag: number, toolCallId: string, input: unknown) {
      const controller = new AbortController();
      const stop = (): void => queueMicrotask(() => controller.abort(new DOMException("the call was stopped", "AbortError")));
      const forget = instance.onCrash(stop);
      const run = async (): Promise<string> => {
        // Not while Rust is on the stack: what a user wrote may call into it.
        await null;
        const call = calls.get(tag);
        const context = call?.contextOf(toolCallId, controller.signal) ?? ({} as ToolContext);
        const checked = await validated(tool.schema, input);
        const inside = insideOf(calls, call?.slot ?? { sessionId: "" });
        return wellFormed(JSON.stringify(toBlocks(await within(inside, controller.signal, () => tool.execute(checked, context)))));
      };
      return {
        output: instance.promise(() => run().finally(forget)),
        cancel: stop,
      };
    },
  };
}
