// The agent in this process: checks arguments, calls the wasm, and keeps the running calls.

import { Subscriptions, full } from "../tabs/subscriptions.js";
import { CallHandle } from "../call/call.js";
import type { CoreAgent } from "../core.js";
import { LockgateError } from "../errors.js";
import { filesOf } from "../workspace/files.js";
import { streamOf } from "../call/event-buffer.js";
import { portsOf } from "../host/ports.js";
import type { EndGuard, MakeEndGuard } from "../runtime/ending.js";
import { isInside, isInsideUser, reentrant } from "../turn/reentrancy.js";
import { heldIn } from "../values/internals.js";
import type { Holding } from "../values/internals.js";
import { jsonText } from "../values/json.js";
import { locksOf } from "../host/locks.js";
import { newNode } from "./node.js";
import type { CoreAnswers } from "./core-answers.js";
import { exportedSessions } from "../session/export.js";
import { checkAfter, checkAnswers, checkCall, checkDocument, checkFormat, checkId, checkInput, checkPage, checkSlot, checkText, checkTimeout } from "../values/arguments.js";
import type { CheckedOptions } from "./options.js";
import { checkContext, checkMode } from "../turn/permissions.js";
import type {
  Agent, AgentState, Answer, Ask, Branch, Call, CallOptions, CompactionReport, ContextReport, InferSchema, Input, Msg, PermissionContext,
  PermissionMode, Reply, Schema, SearchHit, SessionInfo, Slot, StorageReport, ToolInfo, UserInfo, WorkspaceFiles,
} from "../types.js";
import type { SearchOptions } from "../types/session.js";
import { checkSearch } from "../session/search.js";
import { DENIED, storageReport } from "./storage.js";
import { CallMap, FIRST_CHILD_TAG, childCall } from "../subagent/calls.js";
import { modelsOf } from "../subagent/options.js";
import { checkSessionFilter } from "../session/listeners.js";
import type { FullSlot, Listener, SessionFilter } from "../session/listeners.js";
import type { Engine, Instance } from "../runtime/wasm.js";
import { type CallPurpose, ownUser, withOptions } from "./call-request.js";

/** One agent: its options, and the Rust agent in the current wasm instance. */
export class AgentHandle implements Agent {
  readonly name: string;
  readonly files: WorkspaceFiles = filesOf(<T>(request: string) => this.#ask("files", request) as Promise<T>);
  readonly #engine: Engine;
  readonly #checked: CheckedOptions;
  readonly #calls = new CallMap((tag) => childCall(this.#core(), tag, this.#calls, this.#checked.children));
  readonly #node = newNode();
  readonly #isDenied: boolean;
  readonly #subscriptions: Subscriptions;
  /** Work that goes on after replies; `drain` waits for it. */
  readonly #after = new Set<Promise<void>>();
  /** Saves calls before a signal ends the process, or what is new in them before the page ends. */
  readonly #guard: EndGuard | undefined;
  #made: { readonly instance: Instance; readonly core: CoreAgent } | undefined;
  #lastTag = 0;
  #warned = false;
  #shutting = false;
  #closed = false;

  constructor(engine: Engine, checked: CheckedOptions, isDenied: boolean, makeGuard: MakeEndGuard) {
    this.name = checked.name;
    this.#engine = engine;
    this.#isDenied = isDenied;
    this.#checked = checked;
    this.#guard = makeGuard(checked.shutdownSignals, { stop: (now) => this.#endCalls(now), checkpoint: () => this.#enter((core) => core.checkpoint()) });
    const { store, crossTab } = checked;
    this.#subscriptions = new Subscriptions({
      name: checked.name,
      shared: crossTab && store.capabilities.shared === "origin" ? store.name : undefined,
      calls: () => this.#calls.values(),
      info: (slot) => this.session(slot),
      interrupt: (slot, says) => this.#interruptHere(slot, says),
      lockName: (slot) => this.#lockName(slot),
    });
  }

  /** Makes the Rust agent, which checks the options. */
  checkNow(): void {
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

  resend<S extends Schema = never>(slot: Slot, options?: CallOptions<S> & { readonly input?: Input; readonly from?: string }): Call<InferSchema<S>> {
    const { input, from } = options ?? {};
    return this.#begin({ resends: true, ...heldIn(options as Holding | undefined), ...(input === undefined ? {} : { input }), ...(from === undefined ? {} : { from }) }, withOptions(slot, options), true) as Call<InferSchema<S>>;
  }

  async asks(slot: Slot): Promise<readonly Ask[]> {
    return this.#ask("asks", JSON.stringify(checkSlot(slot)));
  }

  async interrupt(slot: Slot, message?: Input): Promise<boolean> {
    const says = message === undefined ? [] : Array.isArray(message) ? message : [message];
    const whole = this.#full(slot);
    if (this.#interruptHere(whole, says) || (await this.#subscriptions.interrupt(whole, says))) return true;
    return this.#ask("interruptElsewhere", jsonText({ ...whole, says }));
  }

  async attach(slot: Slot, options: { readonly after?: number } = {}): Promise<Call | null> {
    const from = checkAfter(options.after);
    const whole = this.#full(slot);
    // Rust checks the ids.
    this.#lockName(whole);
    return this.#subscriptions.attach(whole, from);
  }

  subscribe(of: SessionFilter, listener: Listener): () => void {
    return this.#subscriptions.subscribe(checkSessionFilter(of, listener), listener);
  }

  async getAgentState(slot: Slot): Promise<AgentState> {
    return this.#ask("state", JSON.stringify(checkSlot(slot)));
  }

  async listSessions(userId: string | null, page: { after?: string; limit?: number } = {}): Promise<SessionInfo[]> {
    if (userId !== null) checkId("userId", userId);
    return this.#ask("listSessions", JSON.stringify({ userId, ...checkPage(page) }));
  }

  async listUsers(page: { after?: string; limit?: number } = {}): Promise<UserInfo[]> {
    return this.#ask("listUsers", JSON.stringify(checkPage(page)));
  }

  exportUser(userId: string | null): ReadableStream<string> {
    return streamOf(exportedSessions(this, userId));
  }

  async deleteUser(userId: string | null): Promise<void> {
    if (userId !== null) checkId("userId", userId);
    if (isInsideUser(this.#calls, userId)) throw reentrant("deleteUser");
    await this.#ask("deleteUser", JSON.stringify({ userId }));
    this.#later(this.#subscriptions.userDeleted(userId));
  }

  async history(slot: Slot, page: { before?: string; limit?: number; branch?: string } = {}): Promise<Msg[]> {
    return this.#ask("history", JSON.stringify({ ...checkSlot(slot), ...checkPage(page) }));
  }

  async branches(slot: Slot): Promise<Branch[]> {
    return this.#ask("branches", JSON.stringify(checkSlot(slot)));
  }

  async switchBranch(slot: Slot, branch: string, options?: Holding): Promise<void> {
    return this.#change("switchBranch", slot, { ...checkText({ branch }), ...heldIn(options) });
  }

  async fork(slot: Slot, to: Slot, options: { readonly upTo?: string } & Holding = {}): Promise<SessionInfo> {
    const [from, upTo] = [this.#full(slot), options.upTo === undefined ? {} : checkText({ upTo: options.upTo })];
    if (isInside(this.#calls, from)) throw reentrant("fork");
    return this.#change("fork", to, { from, ...upTo, ...heldIn(options) });
  }

  async search(query: string, options: SearchOptions): Promise<SearchHit[]> {
    const hits = await this.#ask("search", checkSearch(query, options));
    this.#later(this.#afterwards());
    return hits;
  }

  deleteSession(slot: Slot): Promise<void> {
    return this.#change("deleteSession", slot, {});
  }

  clearContext(slot: Slot): Promise<void> {
    return this.#change("clearContext", slot, {});
  }

  compact(slot: Slot): Promise<CompactionReport> {
    return this.#change("compact", slot, {});
  }

  undoCompaction(slot: Slot): Promise<void> {
    return this.#change("undoCompaction", slot, {});
  }

  enterPlanMode(slot: Slot): Promise<void> {
    return this.#change("enterPlanMode", slot, {});
  }

  exitPlanMode(slot: Slot): Promise<void> {
    return this.#change("exitPlanMode", slot, {});
  }

  async inspect(slot: Slot): Promise<ContextReport> {
    return this.#ask("inspect", JSON.stringify(checkSlot(slot)));
  }

  async setPermissionMode(slot: Slot, mode: PermissionMode): Promise<void> {
    return this.#change("changePermissions", slot, { mode: checkMode(mode) }, "setPermissionMode");
  }

  async replacePermissions(slot: Slot, context: PermissionContext): Promise<void> {
    return this.#change("changePermissions", slot, { permissions: checkContext(context) }, "replacePermissions");
  }

  putAgentState(slot: Slot, state: AgentState, options?: Holding): Promise<void> {
    return this.#change("putState", slot, { state, ...heldIn(options) }, "putAgentState");
  }

  append(slot: Slot, messages: Parameters<Agent["append"]>[1]): Promise<readonly Msg[]> {
    return this.#change("append", slot, { messages });
  }

  async renameSession(slot: Slot, title: string): Promise<void> {
    return this.#change("renameSession", slot, checkText({ title }));
  }

  async exportSession(slot: Slot, format: "lockgate" | "agentscope" | "markdown" = "lockgate"): Promise<string> {
    if (checkFormat(format) === "markdown") {
      const document = JSON.parse(await this.exportSession(slot, "lockgate")) as { title: string; history: Msg[] };
      // Few pages need this format, so its code is not loaded at the start.
      return (await import("../session/markdown.js")).toMarkdown(document.title, document.history);
    }
    return this.#ask("exportSession", JSON.stringify({ ...checkSlot(slot), format }));
  }

  async importSession(slot: Slot, text: string, options?: Holding): Promise<SessionInfo> {
    return this.#change("importSession", slot, { text: checkDocument(text), ...heldIn(options) });
  }

  repairSession(slot: Slot): Promise<SessionInfo> {
    return this.#change("repairSession", slot, {});
  }

  async session(slot: Slot): Promise<SessionInfo | null> {
    return this.#ask("session", JSON.stringify(checkSlot(slot)));
  }

  async tools(slot?: Slot): Promise<readonly ToolInfo[]> {
    return this.#ask("tools", JSON.stringify(slot === undefined ? null : checkSlot(slot)));
  }

  async storage(): Promise<StorageReport> {
    return storageReport(this.#checked.store, this.#checked.crossTab);
  }

  async shutdown(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const timeoutMs = checkTimeout(options.timeoutMs);
    this.#endCalls(false);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#closed || this.#endCalls(true), timeoutMs);
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

  /** Begins a call. The call has its place in the queue when this returns. */
  #begin(purpose: CallPurpose, context: (Slot & CallOptions) | undefined, watched: boolean): CallHandle {
    const tag = (this.#lastTag = (this.#lastTag + 1) % FIRST_CHILD_TAG);
    const sessionId = context?.sessionId ?? this.#checked.defaultSessionId ?? "";
    const slot: Slot = Object.freeze({ sessionId, ...ownUser(context) });
    const attributes = Object.freeze({ ...(context?.attributes ?? {}) });
    const whole = full(slot);
    const done = this.#subscriptions.begin();
    const onEnd = (): void => {
      if (this.#calls.delete(tag)) this.#guard?.ended();
      this.#later(this.#subscriptions.changed(whole, done));
      this.#later(this.#afterwards());
    };
    const onEvents = (call: CallHandle): void => this.#subscriptions.show(call);
    const seen = watched || this.#subscriptions.hasListener(whole);
    const setup = { slot, attributes, signal: context?.signal, outputSchema: context?.outputSchema, validateMs: this.#checked.hookMs, watched: seen, settleAfter: () => this.#guard?.processEnd, onEvents, onEnd };
    const call = new CallHandle(setup);
    try {
      const { plain, model } = checkCall(context);
      const checked = checkSlot(context);
      const own = modelsOf(sessionId, this.#checked.children);
      call.model = model ?? own?.model;
      call.compactionModel = own?.compactionModel;
      if (isInside(this.#calls, { ...checked, sessionId }, context?.signal)) throw reentrant("call");
      if ("input" in purpose) checkInput(purpose.input as Input);
      if ("answers" in purpose) checkAnswers(purpose.answers);
      let isWhole = true;
      const request = jsonText({ ...checked, ...plain, tag, ...purpose }, () => (isWhole = false));
      const { instance, core } = this.#core();
      this.#calls.set(tag, call);
      this.#guard?.begun();
      call.begin(instance, () => core.call(request));
      if (!isWhole) call.warn("text", "half a character was replaced in the input");
      if (watched && !this.#warned) void this.#warn(call);
    } catch (error) {
      call.refuse(error as LockgateError);
    }
    return call;
  }

  /** Warns the first call that has a reader, once, if the store may lose data. Says nothing about a memory store that the user chose. */
  async #warn(call: CallHandle): Promise<void> {
    const { store, ownStore } = this.#checked;
    this.#warned = true;
    // The browser has denied the store, so the call fails soon: it gets this warning at once.
    if (this.#isDenied) return void call.warn("storage", DENIED);
    if (!ownStore && store.capabilities.shared === "process") return;
    const { warnings } = await this.storage();
    // If the call has ended meanwhile, it did not get every warning: the next call gets them.
    if (!warnings.every((message) => call.warn("storage", message))) this.#warned = false;
  }

  /** Changes a session outside of a call. The change has its place in the queue when this returns. `method` is the name for errors, if it differs from `name`. */
  async #change<E extends keyof CoreAnswers>(name: E, slot: Slot, rest: object, method: string = name): Promise<CoreAnswers[E]> {
    const checked = checkSlot(slot);
    if (isInside(this.#calls, { sessionId: this.#checked.defaultSessionId, ...checked })) throw reentrant(method);
    const changed = await this.#ask(name, jsonText({ ...rest, ...checked }));
    this.#later(this.#subscriptions.changed(this.#full(slot)));
    this.#later(this.#afterwards());
    return changed;
  }

  /** Keeps work for which the caller does not wait. `drain` waits for it. */
  #later(work: Promise<void> | undefined): void {
    if (work === undefined) return;
    const kept = work.catch(() => {}).finally(() => this.#after.delete(kept));
    this.#after.add(kept);
  }

  /** Does the background work of the wasm, if there is any. */
  #afterwards(): Promise<void> | undefined {
    const made = this.#closed ? undefined : this.#made;
    const hasWork = made?.instance.alive === true && made.instance.enter(() => made.core.hasWork());
    if (!hasWork) return undefined;
    // Subagents may go on after the call of their parent.
    const guard = this.#checked.hasSubagents ? this.#guard : undefined;
    guard?.begun();
    // The work is not urgent, so it waits until all of the wasm is loaded.
    return this.#engine.whole().then(() => made.instance.run(() => made.core.afterwards())).then(() => {}).finally(() => guard?.ended());
  }

  /** Takes no new calls, and ends those that run: at their next boundary, or now. */
  #endCalls(now: boolean): void {
    this.#shutting = true;
    this.#enter((core) => (now ? core.shutDownNow() : core.shutDown()));
  }

  #interruptHere(slot: FullSlot, says: readonly unknown[]): boolean {
    const request = jsonText({ ...slot, says });
    return this.#enter((core) => core.interrupt(request));
  }

  #lockName(slot: FullSlot): string {
    return this.#enter((core) => core.lockName(JSON.stringify(full(slot))));
  }

  /** The slot with userId and sessionId, or ID_INVALID. */
  #full(slot: Slot): FullSlot {
    const { userId, sessionId = this.#checked.defaultSessionId } = checkSlot(slot);
    if (sessionId === undefined) throw new LockgateError("ID_INVALID", "sessionId is missing", { hint: "name a sessionId, or give the agent a defaultSessionId" });
    return { userId, sessionId };
  }

  /** Asks an export of the wasm. The answer is JSON, and has the type of the table. */
  async #ask<E extends keyof CoreAnswers>(name: E, request: string): Promise<CoreAnswers[E]> {
    const { instance, core } = this.#core();
    return JSON.parse((await instance.run(() => core[name](request))) as string) as CoreAnswers[E];
  }

  #enter<T>(work: (core: CoreAgent) => T): T {
    const { instance, core } = this.#core();
    return instance.enter(() => work(core));
  }

  /** The Rust agent in the current instance. After a crash there is a new instance with a new agent. */
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
