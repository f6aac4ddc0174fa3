// The agent as users hold it.

import { CallHandle } from "./call.js";
import type { createAgent } from "./index.js";
import type { CoreAgent, CoreTask } from "./core.js";
import { LockgateError } from "./errors.js";
import { portsOf } from "./host.js";
import { isInside } from "./inside.js";
import { locksOf } from "./locks.js";
import { toMarkdown } from "./markdown.js";
import { checkCall, checkId, checkOptions, checkInput, checkSlot, jsonText } from "./options.js";
import type { Checked } from "./options.js";
import type {
  Agent, AgentState, Call, CallOptions, InferSchema, Input, Msg, Reply, Schema, SessionInfo, Slot, Store,
} from "./types.js";
import { loadEngine } from "./wasm.js";
import type { Engine, Instance, Load } from "./wasm.js";

/** Makes `createAgent` for one way of loading the wasm. */
export function createAgentWith(load: Load, defaultStore: () => Store): typeof createAgent {
  return async (options) => {
    const checked = checkOptions(options, defaultStore);
    const engine = await loadEngine(load);
    const agent = new AgentHandle(engine, checked);
    agent.prove();
    return agent;
  };
}

const encoder = new TextEncoder();

/** One agent: its options, and the agent that Rust keeps for it in the instance that works now. */
class AgentHandle implements Agent {
  readonly name: string;
  readonly #engine: Engine;
  readonly #checked: Checked;
  readonly #calls = new Map<number, CallHandle>();
  #made: { readonly instance: Instance; readonly core: CoreAgent } | undefined;
  #lastTag = 0;
  #closed = false;

  constructor(engine: Engine, checked: Checked) {
    this.name = checked.name;
    this.#engine = engine;
    this.#checked = checked;
  }

  /** Lets Rust check the options. */
  prove(): void {
    this.#core();
  }

  call<S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>): Promise<Reply<InferSchema<S>>> {
    return this.#begin(input, context, false).result as Promise<Reply<InferSchema<S>>>;
  }

  stream<S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>): Call<InferSchema<S>> {
    return this.#begin(input, context, true) as Call<InferSchema<S>>;
  }

  async interrupt(slot: Slot, message?: Input): Promise<boolean> {
    const says = message === undefined ? [] : Array.isArray(message) ? message : [message];
    const request = jsonText({ ...checkSlot(slot), says });
    const { instance, core } = this.#core();
    return instance.enter(() => core.interrupt(request));
  }

  async getAgentState(slot: Slot): Promise<AgentState> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<AgentState>((core) => core.state(request));
  }

  async listSessions(userId: string | null, page: { after?: string; limit?: number } = {}): Promise<SessionInfo[]> {
    if (userId !== null) checkId("userId", userId);
    const request = JSON.stringify({ userId, ...checkPage(page) });
    return this.#ask<SessionInfo[]>((core) => core.listSessions(request));
  }

  async history(slot: Slot, page: { before?: string; limit?: number } = {}): Promise<Msg[]> {
    const request = JSON.stringify({ ...checkSlot(slot), ...checkPage(page) });
    return this.#ask<Msg[]>((core) => core.history(request));
  }

  deleteSession(slot: Slot): Promise<void> {
    return this.#change<void>("deleteSession", slot, {}, (core, request) => core.deleteSession(request));
  }

  clearContext(slot: Slot): Promise<void> {
    return this.#change<void>("clearContext", slot, {}, (core, request) => core.clearContext(request));
  }

  putAgentState(slot: Slot, state: AgentState): Promise<void> {
    return this.#change<void>("putAgentState", slot, { state }, (core, request) => core.putState(request));
  }

  append(slot: Slot, messages: Parameters<Agent["append"]>[1]): Promise<readonly Msg[]> {
    return this.#change<readonly Msg[]>("append", slot, { messages }, (core, request) => core.append(request));
  }

  async renameSession(slot: Slot, title: string): Promise<void> {
    if (typeof title !== "string") throw new LockgateError("INPUT_INVALID", "the title is not text", { hint: "give a string" });
    return this.#change<void>("renameSession", slot, { title }, (core, request) => core.renameSession(request));
  }

  async exportSession(slot: Slot, format: "lockgate" | "agentscope" | "markdown" = "lockgate"): Promise<string> {
    if (!["lockgate", "agentscope", "markdown"].includes(format)) {
      throw new LockgateError("INPUT_INVALID", "there is no such format", { hint: "use lockgate, agentscope or markdown" });
    }
    if (format === "markdown") {
      const document = JSON.parse(await this.exportSession(slot, "lockgate")) as { title: string; history: Msg[] };
      return toMarkdown(document.title, document.history);
    }
    const request = JSON.stringify({ ...checkSlot(slot), format });
    return this.#ask<string>((core) => core.exportSession(request));
  }

  async importSession(slot: Slot, text: string): Promise<SessionInfo> {
    if (typeof text !== "string") throw new LockgateError("INPUT_INVALID", "the document is not text", { hint: "give what exportSession answered with" });
    return this.#change<SessionInfo>("importSession", slot, { text }, (core, request) => core.importSession(request));
  }

  async session(slot: Slot): Promise<SessionInfo | null> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<SessionInfo | null>((core) => core.session(request));
  }

  async shutdown(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs } = options;
    if (timeoutMs !== undefined && !(timeoutMs >= 0)) {
      throw new LockgateError("INPUT_INVALID", "timeoutMs is not a number of milliseconds", { hint: "leave it out to wait for the next boundary" });
    }
    const { instance, core } = this.#core();
    instance.enter(() => core.shutDown());
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => instance.alive && instance.enter(() => core.shutDownNow()), timeoutMs);
    await this.drain();
    clearTimeout(timer);
  }

  async drain(): Promise<void> {
    await Promise.allSettled([...this.#calls.values()].map((call) => call.result));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.shutdown();
    if (this.#closed) return;
    this.#closed = true;
    if (this.#made !== undefined) this.#made.instance.free(this.#made.core);
    if (this.#checked.ownStore) await this.#checked.store.close?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Begins a call: it has its place in the queue when this returns. */
  #begin(input: Input, context: (Slot & CallOptions) | undefined, watched: boolean): CallHandle {
    const tag = (this.#lastTag = (this.#lastTag + 1) >>> 0);
    const sessionId = context?.sessionId ?? this.#checked.defaultSessionId ?? "";
    const slot: Slot = Object.freeze({ sessionId, ...ownUser(context) });
    const attributes = Object.freeze({ ...(context?.attributes ?? {}) });
    const onEnd = (): void => void this.#calls.delete(tag);
    const setup = { slot, attributes, signal: context?.signal, outputSchema: context?.outputSchema, watched, onEnd };
    const call = new CallHandle(setup);
    try {
      const { plain, model } = checkCall(context);
      call.model = model;
      const checked = checkSlot(context);
      if (isInside(this.#calls, { ...checked, sessionId }, context?.signal)) throw reentrant("call");
      checkInput(input);
      const request = encoder.encode(jsonText({ ...checked, ...plain, tag, input }));
      const { instance, core } = this.#core();
      this.#calls.set(tag, call);
      call.begin(instance, () => core.call(request));
    } catch (error) {
      call.refuse(error as LockgateError);
    }
    return call;
  }

  /** Changes a session by hand: the change has its place in the queue when this returns. */
  async #change<T>(what: string, slot: Slot, rest: object, begin: (core: CoreAgent, request: string) => CoreTask): Promise<T> {
    const checked = checkSlot(slot);
    if (isInside(this.#calls, { sessionId: this.#checked.defaultSessionId, ...checked })) throw reentrant(what);
    const request = jsonText({ ...rest, ...checked });
    return this.#ask<T>((core) => begin(core, request));
  }

  async #ask<T>(begin: (core: CoreAgent) => CoreTask): Promise<T> {
    const { instance, core } = this.#core();
    return JSON.parse((await instance.run(() => begin(core))) as string) as T;
  }

  /** The agent in the instance that works now; made anew after a crash. */
  #core(): { readonly instance: Instance; readonly core: CoreAgent } {
    if (this.#closed) throw new LockgateError("SHUTTING_DOWN", "the agent is closed", { hint: "make a new agent" });
    const instance = this.#engine.instance();
    if (this.#made?.instance === instance) return this.#made;

    const { plain, model, store, tools, middleware, crossTab } = this.#checked;
    const lock = locksOf(crossTab && store.capabilities.shared !== "process", store);
    const ports = portsOf(instance, this.#calls, { model, store, tools, middleware, lock });
    const core = instance.own(instance.enter(() => new instance.core.Agent(plain, ports)));
    this.#made = { instance, core };
    return this.#made;
  }
}

function reentrant(what: string): LockgateError {
  return new LockgateError("REENTRANT", `${what} on the session of the tool that makes it would wait for itself`, {
    hint: "use another session, or answer from the tool and let the model go on",
  });
}

function ownUser(context: Slot | undefined): { userId?: string | null } {
  const userId = context?.userId;
  return userId === undefined ? {} : { userId };
}

/** A page of a list; members that are undefined are left out. */
function checkPage(page: Record<string, unknown>): Record<string, unknown> {
  if (typeof page !== "object" || page === null) {
    throw new LockgateError("INPUT_INVALID", "the page is not an object", { hint: "leave it out for the first page" });
  }
  const { limit } = page as { limit?: unknown };
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
    throw new LockgateError("INPUT_INVALID", "limit is not a whole number from 1 on", { hint: "leave it out for the default" });
  }
  return Object.fromEntries(Object.entries(page).filter(([, value]) => value !== undefined));
}
