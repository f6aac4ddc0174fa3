// The ports that Rust is given: a user's model, tools and store, each in the shape that src/wasm expects.

import type { CallHandle } from "./call.js";
import type { Answer } from "./http.js";
import { deepFrozen } from "./frozen.js";
import { comesFrom, insideOf, within } from "./inside.js";
import { storeKind } from "./kinds.js";
import type { AtHand, ModelKind, ToolKind } from "./kinds.js";
import { lockPort, storeLock } from "./lock-port.js";
import type { Lock } from "./locks.js";
import { hookPort } from "./middleware.js";
import type { HookPort } from "./middleware.js";
import { Mirrors } from "./mirror.js";
import type { Node } from "./node.js";
import { opinionOf } from "./permissions.js";
import { pump } from "./pump.js";
import type { Deltas } from "./pump.js";
import { toResult } from "./results.js";
import { validated } from "./schema.js";
import type { ChildModels } from "./subagents.js";
import { wellFormed } from "./text.js";
import type { Batch, Middleware, ModelRequest, Msg, Store, ToolContext } from "./types.js";
import type { Instance } from "./wasm.js";

/** The calls under way, by the tag that Rust knows them by. */
export type Calls = ReadonlyMap<number, CallHandle>;

export interface Ports {
  readonly model: unknown;
  readonly fallbackModel: unknown;
  readonly compactionModel: unknown;
  readonly memoryModel: unknown;
  readonly tokenCounter: unknown;
  readonly store: unknown;
  readonly tools: readonly unknown[];
  readonly hooks: readonly HookPort[];
  readonly lock: Lock;
  readonly storeLock: Lock;
  readonly node: Node;
}

/** The ports of an agent in one instance of the wasm. */
export function portsOf(
  instance: Instance,
  calls: Calls,
  parts: {
    readonly model: ModelKind;
    readonly fallbackModel: ModelKind | undefined;
    readonly compactionModel: ModelKind | undefined;
    readonly memoryModel: ModelKind | undefined;
    readonly tokenCounter: ((text: string) => number) | undefined;
    readonly children: ReadonlyMap<string, ChildModels>;
    readonly store: Store;
    readonly tools: readonly ToolKind[];
    readonly middleware: readonly Middleware[];
    readonly lock: Lock;
    readonly node: Node;
    readonly cacheBytes: number;
  },
): Ports {
  // One mirror for all of them: what one has been given, the others have too.
  const mirrors = new Mirrors(parts.cacheBytes);
  return {
    // A call may have a model of its own; what it falls back to is the agent's.
    model: modelPort(instance, calls, mirrors, (tag) => calls.get(tag)?.model ?? parts.model),
    fallbackModel: parts.fallbackModel && modelPort(instance, calls, mirrors, () => parts.fallbackModel!),
    compactionModel: summarises(parts) && modelPort(instance, calls, mirrors, (tag) => calls.get(tag)?.compactionModel ?? parts.compactionModel ?? calls.get(tag)?.model ?? parts.model),
    memoryModel: parts.memoryModel && modelPort(instance, calls, mirrors, () => parts.memoryModel!),
    tokenCounter: parts.tokenCounter,
    store: storePort(parts.store),
    tools: parts.tools.map((tool) => toolPort(instance, calls, mirrors, tool)),
    hooks: parts.middleware.map((each) => hookPort(calls, mirrors, each)),
    lock: lockPort(instance, parts.lock),
    storeLock: storeLock(instance, storeKind(parts.store)?.own),
    node: parts.node,
  };
}

/** Whether anybody but the model itself summarises. */
function summarises({ compactionModel, children }: { readonly compactionModel: ModelKind | undefined; readonly children: ReadonlyMap<string, ChildModels> }): boolean {
  return compactionModel !== undefined || [...children.values()].some((child) => child.compactionModel !== undefined);
}

function modelPort(instance: Instance, calls: Calls, mirrors: Mirrors, modelOf: (tag: number) => ModelKind): unknown {
  let tools: ModelRequest["tools"] = [];
  return {
    id: (tag: number) => modelOf(tag).id,
    window: (tag: number) => modelOf(tag).contextWindow,
    provider: (tag: number) => modelOf(tag).provider?.plain,
    send: (tag: number, around: string, body: Uint8Array) => answerPort(instance, modelOf(tag).provider!.send(around, body)),
    known: (lineage: number, unchanged: number) => mirrors.known(lineage, unchanged),
    ask(tag: number, lineage: number, added: string, rest: string, others: string | undefined): Deltas {
      const messages = mirrors.extend(lineage, added);
      const { system, generate } = JSON.parse(rest) as Pick<ModelRequest, "system" | "generate">;
      if (others !== undefined) tools = deepFrozen(JSON.parse(others) as ModelRequest["tools"]);
      const offered = tools;
      const model = modelOf(tag);
      const request = (): ModelRequest => ({ system, tools: offered, generate, messages: model.repaired ? repaired(instance, messages) : messages });
      const flag = (): void => void calls.get(tag)?.warn("text", "half a character was replaced in what the model said");
      const deltas = pump((options) => model.generate!(request(), options), flag);
      const forget = instance.onCrash(deltas.cancel);
      return {
        cancel() {
          forget();
          deltas.cancel();
        },
        next: () => deltas.next(),
      };
    },
  };
}

/** An answer of a provider that is cancelled when its instance dies. */
function answerPort(instance: Instance, answer: Answer): unknown {
  const forget = instance.onCrash(() => answer.cancel());
  return {
    begun: () => answer.begun(),
    get status() {
      return answer.status;
    },
    header: (name: string) => answer.header(name),
    next: () => answer.next(),
    cancel() {
      forget();
      answer.cancel();
    },
  };
}

function repaired(instance: Instance, messages: readonly Msg[]): readonly Msg[] {
  const text = wellFormed(JSON.stringify(messages));
  return JSON.parse(instance.enter(() => instance.core.repairTranscript(text, "openai"))) as Msg[];
}

function storePort(store: Store): unknown {
  // Functions are read once: what a user changes on the object later does not change the agent.
  const { get, list, commit } = storeKind(store)?.atHand ?? inPromises(store);
  return {
    get: (keys: string) => get(keys === "" ? [] : keys.split("\n")),
    list: (prefix: string, page: string) => list(prefix, JSON.parse(page) as object),
    commit: (text: string, values: Uint8Array) => {
      const batch = JSON.parse(text) as Omit<Batch, "put"> & { readonly put: { readonly key: string; value: number | Uint8Array }[] };
      let end = 0;
      // A value is its length here; the bytes follow each other in the wasm's memory, and are copied out of it at once.
      for (const record of batch.put) record.value = values.slice(end, (end += record.value as number));
      return commit(batch as Batch);
    },
  };
}

/** The methods of a store that somebody else wrote: whatever they answer or throw, it is a promise. */
function inPromises(store: Store): AtHand {
  const { get, list, commit } = store;
  return {
    get: async (keys) => get.call(store, keys),
    list: async (prefix, page) => list.call(store, prefix, page),
    commit: async (batch) => commit.call(store, batch),
  };
}

/** What a tool answered, as Rust takes it; the caller is told where it is not all of it. */
function written(answer: unknown, call: CallHandle | undefined, name: string): string {
  const { blocks, leftOut } = toResult(answer);
  if (leftOut > 0) call?.warn("tool-output", `${leftOut} characters were left out of what the tool "${name}" answered`);
  return wellFormed(JSON.stringify(blocks), () => call?.warn("text", `half a character was replaced in what the tool "${name}" answered`));
}

function toolPort(instance: Instance, calls: Calls, mirrors: Mirrors, tool: ToolKind): unknown {
  /** Begins something that a user wrote about one call of the tool. */
  const begin = (tag: number, toolCallId: string, input: unknown, work: (checked: unknown, context: ToolContext) => Promise<string>): unknown => {
    const inside = insideOf(calls, calls.get(tag)?.slot ?? { sessionId: "" });
    let controller: AbortController | undefined;
    let isStopped = false;
    const abort = (): void => controller?.abort(new DOMException("the call was stopped", "AbortError"));
    const stop = (): void => {
      isStopped = true;
      queueMicrotask(abort);
    };
    // Made when it is first asked for: most tools never do.
    const signal = (): AbortSignal => {
      if (controller === undefined) {
        controller = new AbortController();
        comesFrom(controller.signal, inside);
        if (isStopped) abort();
      }
      return controller.signal;
    };
    const forget = instance.onCrash(stop);
    const run = async (): Promise<string> => {
      // Not while Rust is on the stack: what a user wrote may call into it.
      await null;
      const call = calls.get(tag);
      let suspended: string | undefined;
      const suspend = (reason: unknown = ""): never => {
        suspended = String(reason);
        throw new DOMException("the call is suspended until its result is handed in", "AbortError");
      };
      const context = call?.contextOf(mirrors, toolCallId, signal, suspend) ?? ({} as ToolContext);
      const checked = await validated(tool.schema, input);
      try {
        const answer = await within(inside, () => work(checked, context));
        if (suspended === undefined) return answer;
      } catch (error) {
        if (suspended === undefined) throw error;
      }
      return wellFormed(JSON.stringify({ suspended }));
    };
    return {
      output: run().finally(forget),
      cancel: stop,
    };
  };
  return {
    run: (tag: number, toolCallId: string, input: unknown) =>
      begin(tag, toolCallId, input, async (checked, context) => written(await tool.execute?.(checked, context), calls.get(tag), tool.name)),
    judge: (tag: number, toolCallId: string, input: unknown, rules: string) =>
      begin(tag, toolCallId, input, async (checked, context) => opinionOf(tool, checked, context, JSON.parse(rules) as string[])),
  };
}
