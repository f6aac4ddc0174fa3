// The agent as users hold it.

import { Audience, full } from "./audience.js";
import { CallHandle } from "./call.js";
import type { createAgent } from "./index.js";
import type { CoreAgent, CoreTask } from "./core.js";
import { LockgateError } from "./errors.js";
import { filesOf } from "./files.js";
import { streamOf } from "./feed.js";
import { portsOf } from "./host.js";
import { isInside, isInsideUser, reentrant } from "./inside.js";
import { jsonText } from "./json.js";
import { linesOf } from "./lines.js";
import { locksOf } from "./locks.js";
import { newNode } from "./node.js";
import { toMarkdown } from "./markdown.js";
import { checkAfter, checkAnswers, checkCall, checkDocument, checkFormat, checkId, checkOptions, checkInput, checkPage, checkSlot, checkText, checkTimeout, isSimple } from "./options.js";
import type { Checked } from "./options.js";
import { changePermissions, checkContext, checkMode } from "./permissions.js";
import type {
  Agent, AgentState, Answer, Ask, Branch, Call, CallOptions, CompactionReport, ContextReport, InferSchema, Input, Msg, PermissionContext,
  PermissionMode, Reply, Schema, SessionInfo, Slot, StorageReport, Store, UserInfo, WorkspaceFiles,
} from "./types.js";
import { type SearchHit, type SearchOptions, checkSearch } from "./search.js";
import { storageReport } from "./storage.js";
import { CallMap, FIRST_CHILD, childCall, modelsOf } from "./subagents.js";
import { checkOf } from "./watch.js";
import type { FullSlot, Listener, Of } from "./watch.js";
import { loadEngine } from "./wasm.js";
import type { Engine, Instance, Load } from "./wasm.js";
import { type Wish, ownUser, withOptions } from "./wish.js";

/** Makes `createAgent` for one way of loading the wasm. */
export function createAgentWith(load: Load, defaultStore: () => Store): typeof createAgent {
  return async (options) => {
    const checked = checkOptions(options, defaultStore);
    const engine = await loadEngine(load);
    if (!isSimple(options)) await engine.whole();
    const agent = new AgentHandle(engine, checked);
    agent.prove();
    return agent;
  };
}

const encoder = new TextEncoder();

/** One agent: its options, and the agent that Rust keeps for it in the instance that works now. */
class AgentHandle implements Agent {
  readonly name: string;
  readonly files: WorkspaceFiles = filesOf((request) => this.#ask((core) => core.files(request)));
  readonly #engine: Engine;
  readonly #checked: Checked;
  readonly #calls = new CallMap((tag) => childCall(this.#core(), tag, this.#calls, this.#checked.children));
  readonly #node = newNode();
  readonly #audience: Audience;
  /** Work after a reply. */
  readonly #after = new Set<Promise<void>>();
  #made: { readonly instance: Instance; readonly core: CoreAgent } | undefined;
  #lastTag = 0;
  #warned = false;
  #shutting = false;
  #closed = false;

  constructor(engine: Engine, checked: Checked) {
    this.name = checked.name;
    this.#engine = engine;
    this.#checked = checked;
    const { store, crossTab } = checked;
    this.#audience = new Audience({
      name: checked.name,
      shared: crossTab && store.capabilities.shared === "origin" ? store.name : undefined,
      calls: () => this.#calls.values(),
      info: (slot) => this.session(slot),
      interrupt: (slot, says) => this.#interruptHere(slot, says),
      lockName: (slot) => this.#lockName(slot),
    });
  }

  /** Lets Rust check the options. */
  prove(): void {
    this.#core();
  }

  call<S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>): Promise<Reply<InferSchema<S>>> {
    return this.#begin({ input }, context, false).result as Promise<Reply<InferSchema<S>>>;
  }

  stream<S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>): Call<InferSchema<S>> {
    return this.#begin({ input }, context, true) as Call<InferSchema<S>>;
  }

  confirm<S extends Schema = never>(slot: Slot, answers: readonly Answer[], options?: CallOptions<S>): Call<InferSchema<S>> {
    return this.#begin({ answers }, withOptions(slot, options), true) as Call<InferSchema<S>>;
  }

  resume<S extends Schema = never>(slot: Slot, options?: CallOptions<S>): Call<InferSchema<S>> {
    return this.#begin({ resumes: true }, withOptions(slot, options), true) as Call<InferSchema<S>>;
  }

  resend<S extends Schema = never>(slot: Slot, options?: CallOptions<S> & { readonly input?: Input }): Call<InferSchema<S>> {
    const input = options?.input;
    return this.#begin({ resends: true, ...(input === undefined ? {} : { input }) }, withOptions(slot, options), true) as Call<InferSchema<S>>;
  }

  async asks(slot: Slot): Promise<readonly Ask[]> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<readonly Ask[]>((core) => core.asks(request));
  }

  async interrupt(slot: Slot, message?: Input): Promise<boolean> {
    const says = message === undefined ? [] : Array.isArray(message) ? message : [message];
    const whole = this.#full(slot);
    if (this.#interruptHere(whole, says) || (await this.#audience.interrupt(whole, says))) return true;
    return this.#ask<boolean>((core) => core.interruptElsewhere(jsonText({ ...whole, says })));
  }

  async attach(slot: Slot, options: { readonly after?: number } = {}): Promise<Call | null> {
    const from = checkAfter(options.after);
    const whole = this.#full(slot);
    // Rust looks at the ids.
    this.#lockName(whole);
    return this.#audience.attach(whole, from);
  }

  subscribe(of: Of, listener: Listener): () => void {
    return this.#audience.subscribe(checkOf(of, listener), listener);
  }

  async getAgentState(slot: Slot): Promise<AgentState> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<AgentState>((core) => core.state(request));
  }

  async listSessions(userId: string | null, page: { after?: string; limit?: number } = {}): Promise<SessionInfo[]> {
    if (userId !== null) checkId("userId", userId);
    const request = JSON.stringify({ userId, ...checkPage(page) });
    return this.#audience.marked(await this.#ask<SessionInfo[]>((core) => core.listSessions(request)));
  }

  async listUsers(page: { after?: string; limit?: number } = {}): Promise<UserInfo[]> {
    const request = JSON.stringify(checkPage(page));
    return this.#ask<UserInfo[]>((core) => core.listUsers(request));
  }

  exportUser(userId: string | null): ReadableStream<string> {
    return streamOf(linesOf(this, userId));
  }

  async deleteUser(userId: string | null): Promise<void> {
    if (userId !== null) checkId("userId", userId);
    const request = JSON.stringify({ userId });
    if (isInsideUser(this.#calls, userId)) throw reentrant("deleteUser");
    await this.#ask<null>((core) => core.deleteUser(request));
    this.#later(this.#audience.userDeleted(userId));
  }

  async history(slot: Slot, page: { before?: string; limit?: number; branch?: string } = {}): Promise<Msg[]> {
    const request = JSON.stringify({ ...checkSlot(slot), ...checkPage(page) });
    return this.#ask<Msg[]>((core) => core.history(request));
  }

  async branches(slot: Slot): Promise<Branch[]> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<Branch[]>((core) => core.branches(request));
  }

  async switchBranch(slot: Slot, branch: string): Promise<void> {
    return this.#change<void>("switchBranch", slot, checkText({ branch }), (core, request) => core.switchBranch(request));
  }

  async fork(slot: Slot, to: Slot, options: { readonly upTo?: string } = {}): Promise<SessionInfo> {
    const [from, upTo] = [this.#full(slot), options.upTo === undefined ? {} : checkText({ upTo: options.upTo })];
    if (isInside(this.#calls, from)) throw reentrant("fork");
    return this.#change<SessionInfo>("fork", to, { from, ...upTo }, (core, request) => core.fork(request));
  }

  async search(query: string, options: SearchOptions): Promise<SearchHit[]> {
    const request = checkSearch(query, options);
    const hits = await this.#ask<SearchHit[]>((core) => core.search(request));
    this.#later(this.#afterwards());
    return hits;
  }

  deleteSession(slot: Slot): Promise<void> {
    return this.#change<void>("deleteSession", slot, {}, (core, request) => core.deleteSession(request));
  }

  clearContext(slot: Slot): Promise<void> {
    return this.#change<void>("clearContext", slot, {}, (core, request) => core.clearContext(request));
  }

  compact(slot: Slot): Promise<CompactionReport> {
    return this.#change<CompactionReport>("compact", slot, {}, (core, request) => core.compact(request));
  }

  undoCompaction(slot: Slot): Promise<void> {
    return this.#change<void>("undoCompaction", slot, {}, (core, request) => core.undoCompaction(request));
  }

  enterPlanMode(slot: Slot): Promise<void> {
    return this.#change<void>("enterPlanMode", slot, {}, (core, request) => core.enterPlanMode(request));
  }

  exitPlanMode(slot: Slot): Promise<void> {
    return this.#change<void>("exitPlanMode", slot, {}, (core, request) => core.exitPlanMode(request));
  }

  async inspect(slot: Slot): Promise<ContextReport> {
    const request = JSON.stringify(checkSlot(slot));
    return this.#ask<ContextReport>((core) => core.inspect(request));
  }

  async setPermissionMode(slot: Slot, mode: PermissionMode): Promise<void> {
    return this.#change<void>("setPermissionMode", slot, { mode: checkMode(mode) }, changePermissions);
  }

  async replacePermissions(slot: Slot, context: PermissionContext): Promise<void> {
    return this.#change<void>("replacePermissions", slot, { permissions: checkContext(context) }, changePermissions);
  }

  putAgentState(slot: Slot, state: AgentState): Promise<void> {
    return this.#change<void>("putAgentState", slot, { state }, (core, request) => core.putState(request));
  }

  append(slot: Slot, messages: Parameters<Agent["append"]>[1]): Promise<readonly Msg[]> {
    return this.#change<readonly Msg[]>("append", slot, { messages }, (core, request) => core.append(request));
  }

  async renameSession(slot: Slot, title: string): Promise<void> {
    return this.#change<void>("renameSession", slot, checkText({ title }), (core, request) => core.renameSession(request));
  }

  async exportSession(slot: Slot, format: "lockgate" | "agentscope" | "markdown" = "lockgate"): Promise<string> {
    if (checkFormat(format) === "markdown") {
      const document = JSON.parse(await this.exportSession(slot, "lockgate")) as { title: string; history: Msg[] };
      return toMarkdown(document.title, document.history);
    }
    const request = JSON.stringify({ ...checkSlot(slot), format });
    return this.#ask<string>((core) => core.exportSession(request));
  }

  async importSession(slot: Slot, text: string): Promise<SessionInfo> {
    return this.#change<SessionInfo>("importSession", slot, { text: checkDocument(text) }, (core, request) => core.importSession(request));
  }

  repairSession(slot: Slot): Promise<SessionInfo> {
    return this.#change<SessionInfo>("repairSession", slot, {}, (core, request) => core.repairSession(request));
  }

  async session(slot: Slot): Promise<SessionInfo | null> {
    const request = JSON.stringify(checkSlot(slot));
    const info = await this.#ask<SessionInfo | null>((core) => core.session(request));
    return info === null ? null : (await this.#audience.marked([info]))[0]!;
  }

  async storage(): Promise<StorageReport> {
    return storageReport(this.#checked.store, this.#checked.crossTab);
  }

  async shutdown(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const timeoutMs = checkTimeout(options.timeoutMs);
    const { instance, core } = this.#core();
    this.#shutting = true;
    instance.enter(() => core.shutDown());
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => instance.alive && instance.enter(() => core.shutDownNow()), timeoutMs);
    await this.drain();
    clearTimeout(timer);
  }

  async drain(): Promise<void> {
    await Promise.allSettled([...this.#calls.values()].map((call) => call.result));
    await Promise.allSettled([...this.#after]);
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
  #begin(wish: Wish, context: (Slot & CallOptions) | undefined, watched: boolean): CallHandle {
    const tag = (this.#lastTag = (this.#lastTag + 1) % FIRST_CHILD);
    const sessionId = context?.sessionId ?? this.#checked.defaultSessionId ?? "";
    const slot: Slot = Object.freeze({ sessionId, ...ownUser(context) });
    const attributes = Object.freeze({ ...(context?.attributes ?? {}) });
    const whole = full(slot);
    const done = this.#audience.begin();
    const onEnd = (): void => {
      this.#calls.delete(tag);
      this.#later(this.#audience.changed(whole, done));
      this.#later(this.#afterwards());
    };
    const onEvents = (call: CallHandle): void => this.#audience.show(call);
    const seen = watched || this.#audience.watches(whole);
    const setup = { slot, attributes, signal: context?.signal, outputSchema: context?.outputSchema, watched: seen, onEvents, onEnd };
    const call = new CallHandle(setup);
    try {
      const { plain, model } = checkCall(context);
      const checked = checkSlot(context);
      const own = modelsOf(sessionId, this.#checked.children);
      call.model = model ?? own?.model;
      call.compactionModel = own?.compactionModel;
      if (isInside(this.#calls, { ...checked, sessionId }, context?.signal)) throw reentrant("call");
      if ("input" in wish) checkInput(wish.input as Input);
      if ("answers" in wish) checkAnswers(wish.answers);
      let isWhole = true;
      const request = encoder.encode(jsonText({ ...checked, ...plain, tag, ...wish }, () => (isWhole = false)));
      const { instance, core } = this.#core();
      this.#calls.set(tag, call);
      call.begin(instance, () => core.call(request));
      if (!isWhole) call.warn("text", "half a character was replaced in the input");
      if (watched && !this.#warned) void this.#warn(call);
    } catch (error) {
      call.refuse(error as LockgateError);
    }
    return call;
  }

  /** Tells the first call that is watched how the store may lose things, once. A memory that the user chose is no news. */
  async #warn(call: CallHandle): Promise<void> {
    const { store, ownStore } = this.#checked;
    this.#warned = true;
    if (!ownStore && store.capabilities.shared === "process") return;
    const { warnings } = await this.storage();
    // One that is over by now has not heard all of it; the next one will.
    if (!warnings.every((message) => call.warn("storage", message))) this.#warned = false;
  }

  /** Changes a session by hand: the change has its place in the queue when this returns. */
  async #change<T>(what: string, slot: Slot, rest: object, begin: (core: CoreAgent, request: string) => CoreTask): Promise<T> {
    const checked = checkSlot(slot);
    if (isInside(this.#calls, { sessionId: this.#checked.defaultSessionId, ...checked })) throw reentrant(what);
    const request = jsonText({ ...rest, ...checked });
    const changed = await this.#ask<T>((core) => begin(core, request));
    this.#later(this.#audience.changed(this.#full(slot)));
    this.#later(this.#afterwards());
    return changed;
  }

  /** Work that a caller need not wait for; `drain` does. */
  #later(work: Promise<void> | undefined): void {
    if (work === undefined) return;
    const kept = work.catch(() => {}).finally(() => this.#after.delete(kept));
    this.#after.add(kept);
  }

  /** Does what the core has left for later, if there is anything. */
  #afterwards(): Promise<void> | undefined {
    const made = this.#closed ? undefined : this.#made;
    const hasWork = made?.instance.alive === true && made.instance.enter(() => made.core.hasWork());
    // It is in no hurry: where a part of the wasm is still on its way, this waits for it.
    return hasWork ? this.#engine.whole().then(() => made.instance.run(() => made.core.afterwards())).then(() => {}) : undefined;
  }

  #interruptHere(slot: FullSlot, says: readonly unknown[]): boolean {
    const request = jsonText({ ...slot, says });
    const { instance, core } = this.#core();
    return instance.enter(() => core.interrupt(request));
  }

  #lockName(slot: FullSlot): string {
    const { instance, core } = this.#core();
    return instance.enter(() => core.lockName(JSON.stringify(full(slot))));
  }

  /** A slot with nothing left out, or ID_INVALID. */
  #full(slot: Slot): FullSlot {
    const { userId, sessionId = this.#checked.defaultSessionId } = checkSlot(slot);
    if (sessionId === undefined) throw new LockgateError("ID_INVALID", "sessionId is missing", { hint: "name a sessionId, or give the agent a defaultSessionId" });
    return { userId, sessionId };
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
    const { plain, model, fallbackModel, compactionModel, memoryModel, tokenCounter, children, store, tools, middleware, crossTab, cacheBytes } = this.#checked;
    const lock = locksOf(crossTab && store.capabilities.shared !== "process", store);
    const ports = portsOf(instance, this.#calls, { model, fallbackModel, compactionModel, memoryModel, tokenCounter, children, store, tools, middleware, lock, node: this.#node, cacheBytes });
    const core = instance.own(instance.enter(() => new instance.core.Agent(plain, ports)));
    if (this.#shutting) instance.enter(() => core.shutDown());
    this.#made = { instance, core };
    return this.#made;
  }
}
