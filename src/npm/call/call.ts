// The `Call` object that users get: its events, its result, and the methods that end it.

import type { CoreCall } from "../core.js";
import { LockgateError, fromCore, isCoreError } from "../errors.js";
import type { CoreError } from "../errors.js";
import { EventBuffer, streamOf } from "./event-buffer.js";
import type { UnnumberedEvent } from "./event-buffer.js";
import { AttachedCall } from "./attached.js";
import { jsonText } from "../values/json.js";
import type { ModelInternals } from "../values/internals.js";
import type { MessageCache } from "./message-cache.js";
import { checkInput } from "../values/arguments.js";
import { respond } from "../protocol/response.js";
import type { Protocol, ResponseOptions } from "../protocol/response.js";
import { validated } from "../values/schema.js";
import { stateOf } from "./state.js";
import type { AgentEvent, AgentState, Attributes, Block, Call, Input, Reply, Schema, Slot, ToolContext } from "../types.js";
import type { Instance } from "../runtime/wasm.js";

/** An event as Rust sends it: without the members that all events of a call share. */
type CoreEvent = { readonly type: string };

/** The most text that a tool may emit while it runs. Unread events are kept in memory. */
const MAX_EMITTED = 20_000_000;

/** What differs in the contexts of tools. */
export interface ContextParts {
  readonly signal?: () => AbortSignal;
  readonly suspend?: (reason?: string) => never;
  /** Whether the tool has ended for the engine. */
  readonly isOver?: () => boolean;
}

/** What a `CallHandle` is made from. */
export interface CallSetup {
  readonly slot: Slot;
  readonly attributes: Attributes;
  readonly signal: AbortSignal | undefined;
  readonly outputSchema: Schema | undefined;
  /** How long `validate` of the output schema may take, in ms. */
  readonly validateMs: number;
  /** Whether events are collected from the start. `watch` turns this on later. */
  readonly watched: boolean;
  /** A promise to wait for before the result settles; undefined unless the process is about to end. */
  readonly settleAfter: () => Promise<void> | undefined;
  /** Called when there are new events, and once more when the call has ended. */
  readonly onEvents: (call: CallHandle) => void;
  /** Called once, when the call has ended. */
  readonly onEnd: () => void;
}

/** One call. It runs to its end whether or not its events are read. */
export class CallHandle implements Call {
  readonly slot: Slot;
  readonly attributes: Attributes;
  readonly result: Promise<Reply>;
  /** The model of this call, if it differs from the agent's. */
  model: ModelInternals | undefined;
  /** The model that writes summaries in this call, if it differs from the agent's. */
  compactionModel: ModelInternals | undefined;
  readonly #setup: CallSetup;
  #id = "";
  #core: CoreCall | undefined;
  #instance: Instance | undefined;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: LockgateError) => void;
  readonly #feed = new EventBuffer();
  #watched: boolean;
  #error: LockgateError | undefined;
  #ended = false;
  #detached = false;
  #hasReader = false;
  #controller: AbortController | undefined;
  #warned: Set<string> | undefined;
  /** Ends the wait for `validate` of the output schema, while it runs. */
  #leaveValidate: ((cause: Error) => void) | undefined;
  #stopListening = (): void => {};

  constructor(setup: CallSetup) {
    this.#setup = setup;
    this.slot = setup.slot;
    this.attributes = setup.attributes;
    this.#watched = setup.watched;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A user need not read the result. Without this, a failed call would end a Node process as an unhandled rejection.
    this.result.catch(() => {});
  }

  get id(): string {
    return this.#id;
  }

  /** Starts the call. An invalid request makes the call fail. */
  begin(instance: Instance, start: () => CoreCall): void {
    try {
      if (this.#setup.signal?.aborted) throw this.#aborted();
      const core = instance.hold(instance.enter(start));
      this.#core = core;
      this.#instance = instance;
      this.#id = core.id;
      this.#listen();
      instance.drive(core.number, { poll: () => this.#poll(core), crashed: (error) => this.#crashed(error) });
    } catch (error) {
      this.#fail(error as LockgateError);
    }
  }

  /** Refers to a call that Rust runs by itself, such as the call of a subagent. */
  observe(instance: Instance, find: () => CoreCall | undefined): void {
    const core = instance.enter(find);
    if (core === undefined) return;
    this.#core = instance.own(core);
    this.#instance = instance;
    this.#id = core.id;
  }

  /** The `context` argument of a tool or hook of this call. By default its signal aborts when the call has ended. */
  contextOf(cache: MessageCache, toolCallId: string, { signal = () => this.#ending().signal, suspend = notSuspended, isOver = () => false }: ContextParts = {}): ToolContext {
    const { slot, id: callId, attributes } = this;
    let left = MAX_EMITTED;
    const emit = (partial: string | Block): void => {
      if (isOver()) return;
      const text = typeof partial === "object" && partial !== null ? jsonText(partial) : String(partial);
      left -= text.length;
      if (left >= 0) this.emit(toolCallId, text, typeof partial === "object" && partial !== null);
      else this.warn("tool-output", `a tool has emitted more than ${MAX_EMITTED} characters: the rest is not shown`);
    };
    const state = (): AgentState => stateOf((ask) => this.#readCore(ask), cache);
    const context = { ...slot, callId, attributes, toolCallId, emit, suspend, get signal() { return signal(); }, get state() { return state(); } };
    return Object.freeze(context);
  }

  /** Makes the call fail before it has started. */
  refuse(error: LockgateError): void {
    this.#fail(error);
  }

  stop(message?: Input): void {
    const messages = message === undefined ? [] : Array.isArray(message) ? message : [message];
    checkInput(messages as Input);
    const text = jsonText(messages);
    this.#whileOpen((core) => core.stop(text));
    this.#leaveValidate?.(new Error("the call was stopped while validate of the output schema ran"));
  }

  detach(): void {
    this.#detached = true;
  }

  /** Adds a `tool-delta` event with a text, or with a block as JSON. */
  emit(toolCallId: string, partial: string, isBlock = false): void {
    this.#whileOpen((core, instance) => {
      if (isBlock) core.emitBlock(toolCallId, partial);
      else core.emit(toolCallId, partial);
      instance.wake(core.number);
    });
  }

  /** Adds a `warning` event, once for each message. Returns false if the call has ended already. */
  warn(code: string, message: string): boolean {
    this.#warned ??= new Set();
    if (this.#warned.has(message)) return true;
    this.#warned.add(message);
    this.#whileOpen((core, instance) => {
      core.warn(code, message);
      instance.wake(core.number);
    });
    return !this.#ended;
  }

  toReadableStream(): ReadableStream<AgentEvent> {
    return streamOf(this[Symbol.asyncIterator]());
  }

  toResponse(protocol?: Protocol, init?: ResponseOptions): Response {
    return respond(this, protocol, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#hasReader) {
      throw new LockgateError("INPUT_INVALID", "this call has a reader already", { hint: "use attach for another reader" });
    }
    this.#hasReader = true;
    this.watch();
    return this.#feed.read(0, async () => {
      if (this.#detached) return;
      this.stop();
      await this.result.catch(() => {});
    });
  }

  /** Collects events from now on, and the events that Rust has kept so far. */
  watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    this.#whileOpen((core, instance) => instance.wake(core.number));
  }

  /** The same call for another reader, from the event with the number `from`. The call runs on when that reader leaves. */
  follow(from: number): Call {
    this.watch();
    const { id, slot, result } = this;
    return new AttachedCall({ id, slot, result, from, feed: this.#feed, stop: (message) => this.stop(message), onLeave: () => {} });
  }

  /** The number of events so far. */
  get length(): number {
    return this.#feed.length;
  }

  /** The events from the number `seq` on. */
  since(seq: number): readonly AgentEvent[] {
    return this.#feed.since(seq);
  }

  /** Drops the events before the number `seq`, for a host that keeps them itself. */
  forget(seq: number): void {
    this.#feed.forget(seq);
  }

  #ending(): AbortController {
    this.#controller ??= new AbortController();
    return this.#controller;
  }

  #poll(core: CoreCall): boolean {
    const batch = core.poll(this.#watched);
    if (batch === undefined) return false;
    const at = this.#watched ? new Date().toISOString() : "";
    for (const event of JSON.parse(batch) as CoreEvent[]) this.#take(event, at);
    if (this.#ended) this.#release(core);
    this.#notify();
    return this.#ended;
  }

  #crashed(error: LockgateError): void {
    this.#fail(error);
    this.#release();
  }

  /** Frees what the call holds in the wasm: a user may keep the `Call` object long after its end. */
  #release(core?: CoreCall): void {
    if (core !== undefined) this.#instance?.free(core);
    this.#core = undefined;
    this.#instance = undefined;
  }

  #take(event: CoreEvent, at: string): void {
    if (this.#watched) this.#feed.add({ ...event, slot: this.slot, callId: this.#id, at } as unknown as UnnumberedEvent);
    if (event.type === "call-end") this.#end(() => this.#resolveWith((event as unknown as { reply: Reply }).reply));
    if (event.type === "error") this.#fail(this.#errorOf((event as unknown as { error: CoreError }).error));
  }

  #notify(): void {
    this.#feed.notify();
    this.#setup.onEvents(this);
  }

  /** Resolves the result. If the output schema has a `validate` function, its output is the result, and its errors are OUTPUT_INVALID. The function is code of the user, so it has a deadline. */
  #resolveWith(reply: Reply): void {
    const { outputSchema: schema, validateMs, signal } = this.#setup;
    if (schema === undefined || reply.output === undefined) return this.#resolve(reply);
    const details = { slot: this.slot, callId: this.#id, partial: reply.message };
    const refuse = (cause: unknown): void => {
      over();
      const message = cause instanceof Error ? cause.message : String(cause);
      this.#reject(new LockgateError("OUTPUT_INVALID", message, { ...details, cause, hint: "the turn is stored; use a simpler schema" }));
    };
    const abort = (): void => {
      over();
      this.#reject(this.#aborted({ partial: reply.message }));
    };
    const timer = setTimeout(() => refuse(new Error(`validate of the output schema did not finish within ${validateMs} ms`)), validateMs);
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.#leaveValidate = undefined;
    };
    this.#leaveValidate = refuse;
    signal?.addEventListener("abort", abort);
    validated(schema, reply.output).then((output) => {
      over();
      this.#resolve({ ...reply, output });
    }, refuse);
  }

  /** The error of an `error` event, with what the event leaves out, such as the cause. */
  #errorOf(error: CoreError): LockgateError {
    if (error.code === "ABORTED") return this.#aborted(error);
    const complete = this.#core?.failure();
    const details = { slot: this.slot, callId: this.#id, partial: error.partial };
    return fromCore(isCoreError(complete) ? complete : error, details);
  }

  #aborted(error?: Pick<CoreError, "partial">): LockgateError {
    const details = { slot: this.slot, callId: this.#id, partial: error?.partial, cause: this.#setup.signal?.reason };
    return new LockgateError("ABORTED", "the call was aborted by its signal", details);
  }

  #fail(error: LockgateError): void {
    if (this.#ended) return;
    this.#error = error;
    if (this.#watched && this.#feed.last !== "error") {
      const { code, message, hint, retryable } = error;
      const shown = { code, message, retryable, ...(hint === undefined ? {} : { hint }) };
      this.#feed.add({ type: "error", error: shown, slot: this.slot, callId: this.#id, at: new Date().toISOString() } as unknown as UnnumberedEvent);
    }
    this.#end(() => this.#reject(error));
  }

  #end(settle: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopListening();
    this.#controller?.abort();
    const settled = (): void => {
      settle();
      this.#feed.end(this.#error);
      this.#notify();
    };
    const first = this.#setup.settleAfter();
    if (first === undefined) settled();
    else void first.then(settled);
    this.#setup.onEnd();
  }

  #listen(): void {
    const { signal } = this.#setup;
    if (signal === undefined) return;
    const abort = (): void => this.#whileOpen((core) => core.abort());
    signal.addEventListener("abort", abort, { once: true });
    this.#stopListening = () => signal.removeEventListener("abort", abort);
  }

  /** Asks Rust about the call, which is possible only while the call runs. */
  #readCore<T>(ask: (core: CoreCall) => T | undefined): T {
    let answer: T | undefined;
    this.#whileOpen((core) => void (answer = ask(core)));
    if (answer !== undefined) return answer;
    throw new LockgateError("INPUT_INVALID", "the state of a call can be read only while its tool or middleware runs", {
      hint: "read context.state before the tool or middleware returns",
    });
  }

  #whileOpen(act: (core: CoreCall, instance: Instance) => void): void {
    const [core, instance] = [this.#core, this.#instance];
    if (this.#ended || core === undefined || !instance?.alive) return;
    instance.enter(() => act(core, instance));
  }
}

function notSuspended(): never {
  throw new LockgateError("INPUT_INVALID", "only a running tool can be suspended", { hint: "call context.suspend inside execute" });
}
