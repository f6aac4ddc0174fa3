// The ports that Rust calls: the user's model, tools and store, with the methods that src/wasm needs.

import type { CallHandle } from "../call/call.js";
import type { JsDeltas, JsModel, JsPorts, JsResponse, JsRun, JsStore, JsTool } from "../glue.js";
import { deepFrozen } from "../values/frozen.js";
import { markSignal, toolSession, runInside } from "../turn/reentrancy.js";
import type { ToolSession } from "../turn/reentrancy.js";
import { storeInternals } from "../values/internals.js";
import type { SyncStore, ModelInternals, ToolInternals } from "../values/internals.js";
import { lockPort, storeLocks } from "./lock-port.js";
import type { Locks } from "./locks.js";
import { hookPort } from "../turn/middleware.js";
import { MessageCache } from "../call/message-cache.js";
import type { Node } from "../agent/node.js";
import { toolPermission } from "../turn/permissions.js";
import { readDeltas } from "./model-stream.js";
import { MAX_CHARS, shortened, toResult } from "../turn/tool-results.js";
import { returned } from "../turn/generator.js";
import { validated } from "../values/schema.js";
import type { ChildModels } from "../subagent/options.js";
import { wellFormed } from "../values/text.js";
import type { Batch, Middleware, ModelRequest, Msg, Store, ToolContext } from "../types.js";
import type { Instance } from "../runtime/wasm.js";

/** The running calls, by the tag that Rust uses. */
export type Calls = ReadonlyMap<number, CallHandle>;

/** The ports of an agent in one instance of the wasm. */
export function portsOf(
  instance: Instance,
  calls: Calls,
  parts: {
    readonly model: ModelInternals;
    readonly fallbackModel: ModelInternals | undefined;
    readonly compactionModel: ModelInternals | undefined;
    readonly memoryModel: ModelInternals | undefined;
    readonly tokenCounter: ((text: string) => number) | undefined;
    readonly children: ReadonlyMap<string, ChildModels>;
    readonly store: Store;
    readonly tools: readonly ToolInternals[];
    readonly middleware: readonly Middleware[];
    readonly lock: Locks;
    readonly node: Node;
    readonly cacheBytes: number;
  },
): JsPorts {
  // All ports share one cache: a message that was sent to one port is known to the others.
  const mirrors = new MessageCache(parts.cacheBytes);
  return {
    // A call may have its own model. The fallback models are those of the agent.
    model: modelPort(instance, calls, mirrors, (tag) => calls.get(tag)?.model ?? parts.model),
    fallbackModel: parts.fallbackModel && modelPort(instance, calls, mirrors, () => parts.fallbackModel!),
    compactionModel: summarises(parts)
      ? modelPort(instance, calls, mirrors, (tag) => calls.get(tag)?.compactionModel ?? parts.compactionModel ?? calls.get(tag)?.model ?? parts.model)
      : undefined,
    memoryModel: parts.memoryModel && modelPort(instance, calls, mirrors, () => parts.memoryModel!),
    tokenCounter: parts.tokenCounter,
    store: storePort(parts.store),
    tools: parts.tools.map((tool) => toolPort(instance, calls, mirrors, tool)),
    hooks: parts.middleware.map((each) => hookPort(calls, mirrors, each)),
    locks: lockPort(instance, parts.lock),
    storeLocks: storeLocks(instance, storeInternals(parts.store)?.own),
    node: parts.node,
  };
}

/** Whether the agent or a kind of subagent has its own model for summaries. */
function summarises({ compactionModel, children }: { readonly compactionModel: ModelInternals | undefined; readonly children: ReadonlyMap<string, ChildModels> }): boolean {
  return compactionModel !== undefined || [...children.values()].some((child) => child.compactionModel !== undefined);
}

function modelPort(instance: Instance, calls: Calls, mirrors: MessageCache, modelOf: (tag: number) => ModelInternals): JsModel {
  let tools: ModelRequest["tools"] = [];
  return {
    id: (tag: number) => modelOf(tag).id,
    window: (tag: number) => modelOf(tag).contextWindow,
    provider: (tag: number) => modelOf(tag).provider?.plain,
    send: (tag: number, around: string, body: Uint8Array) => responsePort(instance, modelOf(tag).provider!.send(around, body)),
    known: (lineage: number, unchanged: number) => mirrors.known(lineage, unchanged),
    ask(tag: number, lineage: number, added: string, rest: string, others: string | undefined): JsDeltas {
      const messages = mirrors.extend(lineage, added);
      const { system, generate } = JSON.parse(rest) as Pick<ModelRequest, "system" | "generate">;
      if (others !== undefined) tools = deepFrozen(JSON.parse(others) as ModelRequest["tools"]);
      const offered = tools;
      const model = modelOf(tag);
      const request = (): ModelRequest => ({ system, tools: offered, generate, messages: model.repaired ? repaired(instance, messages) : messages });
      const flag = (): void => void calls.get(tag)?.warn("text", "half a character was replaced in what the model said");
      const deltas = readDeltas((options) => model.generate!(request(), options), flag);
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

/** The response of a provider. It is cancelled when the instance ends. */
function responsePort(instance: Instance, response: JsResponse): JsResponse {
  const forget = instance.onCrash(() => response.cancel());
  return {
    begun: () => response.begun(),
    get status() {
      return response.status;
    },
    header: (name: string) => response.header(name),
    next: () => response.next(),
    done() {
      forget();
      response.done();
    },
    cancel() {
      forget();
      response.cancel();
    },
  };
}

function repaired(instance: Instance, messages: readonly Msg[]): readonly Msg[] {
  const text = wellFormed(JSON.stringify(messages));
  return JSON.parse(instance.enter(() => instance.core.repairTranscript(text, "openai"))) as Msg[];
}

function storePort(store: Store): JsStore {
  // Functions are read once: if the user changes the object later, the agent does not change.
  const { get, list, commit } = storeInternals(store)?.sync ?? inPromises(store);
  return {
    get: (keys: string) => get(JSON.parse(keys) as string[]),
    list: (prefix: string, page: string) => list(prefix, JSON.parse(page) as object),
    commit(text: string, values: readonly Uint8Array[]) {
      const batch = JSON.parse(text) as Omit<Batch, "put"> & { put: unknown[] };
      batch.put = batch.put.map((key, n) => ({ key, value: values[n] }));
      return commit(batch as Batch);
    },
  };
}

/** The methods of a user's store. Whatever they return or throw becomes a promise. */
function inPromises(store: Store): SyncStore {
  const { get, list, commit } = store;
  return {
    get: async (keys) => get.call(store, keys),
    list: async (prefix, page) => list.call(store, prefix, page),
    commit: async (batch) => commit.call(store, batch),
  };
}

/** Converts the output of a tool to JSON for Rust. The caller gets a warning if something was left out or replaced. */
function written(answer: unknown, call: CallHandle | undefined, name: string): string {
  const { blocks, leftOut } = toResult(answer);
  if (leftOut > 0) call?.warn("tool-output", `${leftOut} characters were left out of what the tool "${name}" answered`);
  return wellFormed(JSON.stringify(blocks), () => call?.warn("text", `half a character was replaced in what the tool "${name}" answered`));
}

/** How a run of a tool is stopped, and what it sees of that. */
function stoppingOf(inside: ToolSession) {
  let controller: AbortController | undefined;
  let isStopped = false;
  /** Whether the engine waits for the tool no longer. What it emits then is too late. */
  let isOver = false;
  let tell!: () => void;
  const stopped = new Promise<void>((resolve) => (tell = resolve));
  const abort = (): void => controller?.abort(new DOMException("the call was stopped", "AbortError"));
  return {
    stopped,
    isOver: (): boolean => isOver,
    end: (): void => void (isOver = true),
    stop(): void {
      isStopped = isOver = true;
      queueMicrotask(abort);
      tell();
    },
    // Created on first use, because most tools never use it.
    signal(): AbortSignal {
      if (controller === undefined) {
        controller = new AbortController();
        markSignal(controller.signal, inside);
        if (isStopped) abort();
      }
      return controller.signal;
    },
  };
}

function toolPort(instance: Instance, calls: Calls, mirrors: MessageCache, tool: ToolInternals): JsTool {
  /** Starts code of the user for one call of the tool. */
  const begin = (tag: number, toolCallId: string, input: unknown, work: (checked: unknown, context: ToolContext, stopped: Promise<void>) => Promise<string>): JsRun => {
    const inside = toolSession(calls, calls.get(tag)?.slot ?? { sessionId: "" });
    const stopping = stoppingOf(inside);
    const forget = instance.onCrash(stopping.stop);
    const run = async (): Promise<string> => {
      // Code of the user must not run while Rust is on the stack, because it may call into Rust.
      await null;
      const call = calls.get(tag);
      let suspended: string | undefined;
      const suspend = (reason: unknown = ""): never => {
        suspended = shortened(String(reason), MAX_CHARS).kept;
        throw new DOMException("the call is suspended until its result is handed in", "AbortError");
      };
      const context = call?.contextOf(mirrors, toolCallId, { suspend, signal: stopping.signal, isOver: stopping.isOver }) ?? ({} as ToolContext);
      const checked = await validated(tool.schema, input);
      try {
        const answer = await runInside(inside, () => work(checked, context, stopping.stopped));
        if (suspended === undefined) return answer;
      } catch (error) {
        if (suspended === undefined) throw error;
      }
      return wellFormed(JSON.stringify({ suspended }));
    };
    return {
      output: run().finally(() => {
        stopping.end();
        forget();
      }),
      cancel() {
        forget();
        stopping.stop();
      },
    };
  };
  return {
    run: (tag: number, toolCallId: string, input: unknown) =>
      begin(tag, toolCallId, input, async (checked, context, stopped) => written(await returned(await tool.execute?.(checked, context), context, stopped), calls.get(tag), tool.name)),
    judge: (tag: number, toolCallId: string, input: unknown, rules: string) =>
      begin(tag, toolCallId, input, async (checked, context) => toolPermission(tool, checked, context, JSON.parse(rules) as string[])),
  };
}
