// A call as users hold it: its events, its result, and the handles that end it.

import type { CoreCall } from "./core.js";
import { LockgateError, fromCore, isCoreError } from "./errors.js";
import type { CoreError } from "./errors.js";
import { Feed, streamOf } from "./feed.js";
import type { Unplaced } from "./feed.js";
import { Followed } from "./followed.js";
import { jsonText } from "./json.js";
import type { ModelKind } from "./kinds.js";
import type { Mirrors } from "./mirror.js";
import { checkInput } from "./options.js";
import { respond } from "./respond.js";
import type { Protocol, ResponseOptions } from "./respond.js";
import { validated } from "./schema.js";
import { stateOf } from "./state.js";
import type { AgentEvent, AgentState, Attributes, Call, Input, Reply, Schema, Slot, ToolContext } from "./types.js";
import type { Instance } from "./wasm.js";

/** An event as Rust sends it: without the members that all events of a call share. */
type Bare = { readonly type: string };

/** What a call is made of. */
export interface CallSetup {
  readonly slot: Slot;
  readonly attributes: Attributes;
  readonly signal: AbortSignal | undefined;
  readonly outputSchema: Schema | undefined;
  /** Whether anybody will read its events. */
  readonly watched: boolean;
  /** Called when it has something to show, and once more when it is over. */
  readonly onEvents: (call: CallHandle) => void;
  /** Called once, when it is over. */
  readonly onEnd: () => void;
}

/** One call. It drives itself to its end; reading only watches. */
export class CallHandle implements Call {
  readonly slot: Slot;
  readonly attributes: Attributes;
  readonly result: Promise<Reply>;
  /** The model of this call, if it is not the agent's. */
  model: ModelKind | undefined;
  /** Who summarises in this call, if it is not who does for the agent. */
  compactionModel: ModelKind | undefined;
  readonly #setup: CallSetup;
  #id = "";
  #core: CoreCall | undefined;
  #instance: Instance | undefined;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: LockgateError) => void;
  readonly #feed = new Feed();
  #watched: boolean;
  #error: LockgateError | undefined;
  #over = false;
  #detached = false;
  #taken = false;
  #controller: AbortController | undefined;
  #warned: Set<string> | undefined;
  #unlisten = (): void => {};

  constructor(setup: CallSetup) {
    this.#setup = setup;
    this.slot = setup.slot;
    this.attributes = setup.attributes;
    this.#watched = setup.watched;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Nobody has to ask for the result: that is no reason to end a Node process.
    this.result.catch(() => {});
  }

  get id(): string {
    return this.#id;
  }

  /** Begins; what is wrong with the request fails the call. */
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

  /** Only looks at a call that others move. */
  lookAt(instance: Instance, find: () => CoreCall | undefined): void {
    const core = instance.enter(find);
    if (core === undefined) return;
    this.#core = instance.own(core);
    this.#instance = instance;
    this.#id = core.id;
  }

  /** What a tool or a hook of this call is given; a hook is told to stop when the call is over. */
  contextOf(mirrors: Mirrors, toolCallId: string, signal = (): AbortSignal => this.#ending().signal, suspend: (reason?: string) => never = notSuspended): ToolContext {
    const { slot, id: callId, attributes } = this;
    const emit = (partial: string): void => this.emit(toolCallId, String(partial));
    const state = (): AgentState => stateOf((ask) => this.#reading(ask), mirrors);
    const context = { ...slot, callId, attributes, toolCallId, emit, suspend, get signal() { return signal(); }, get state() { return state(); } };
    return Object.freeze(context);
  }

  /** Fails before it has begun. */
  refuse(error: LockgateError): void {
    this.#fail(error);
  }

  stop(message?: Input): void {
    const says = message === undefined ? [] : Array.isArray(message) ? message : [message];
    checkInput(says as Input);
    const text = jsonText(says);
    this.#whileOpen((core) => core.stop(text));
  }

  detach(): void {
    this.#detached = true;
  }

  emit(toolCallId: string, partial: string): void {
    this.#whileOpen((core, instance) => {
      core.emit(toolCallId, partial);
      instance.wake(core.number);
    });
  }

  /** Shows a warning, once; false if the call is over already. */
  warn(code: string, message: string): boolean {
    this.#warned ??= new Set();
    if (this.#warned.has(message)) return true;
    this.#warned.add(message);
    this.#whileOpen((core, instance) => {
      core.warn(code, message);
      instance.wake(core.number);
    });
    return !this.#over;
  }

  toReadableStream(): ReadableStream<AgentEvent> {
    return streamOf(this[Symbol.asyncIterator]());
  }

  toResponse(protocol?: Protocol, init?: ResponseOptions): Response {
    return respond(this, protocol, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#taken) {
      throw new LockgateError("INPUT_INVALID", "this call is being read already", { hint: "a call has one reader; attach for more" });
    }
    this.#taken = true;
    this.watch();
    return this.#feed.read(0, async () => {
      if (this.#detached) return;
      this.stop();
      await this.result.catch(() => {});
    });
  }

  /** Lets its events be seen, also those from before. */
  watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    this.#whileOpen((core, instance) => instance.wake(core.number));
  }

  /** The same call for one more reader, from an event on; leaving it stops nothing. */
  follow(from: number): Call {
    this.watch();
    const { id, slot, result } = this;
    return new Followed({ id, slot, result, from, feed: this.#feed, stop: (message) => this.stop(message), left: () => {} });
  }

  /** How many events there are. */
  get length(): number {
    return this.#feed.length;
  }

  /** The events from a place on. */
  since(place: number): readonly AgentEvent[] {
    return this.#feed.since(place);
  }

  #ending(): AbortController {
    this.#controller ??= new AbortController();
    return this.#controller;
  }

  #poll(core: CoreCall): boolean {
    const batch = core.poll(this.#watched);
    if (batch === undefined) return false;
    const at = this.#watched ? new Date().toISOString() : "";
    for (const bare of JSON.parse(batch) as Bare[]) this.#take(bare, at);
    if (this.#over) this.#letGo(core);
    this.#show();
    return this.#over;
  }

  #crashed(error: LockgateError): void {
    this.#fail(error);
    this.#letGo();
  }

  /** Whoever keeps a call that is over keeps nothing of the wasm. */
  #letGo(core?: CoreCall): void {
    if (core !== undefined) this.#instance?.free(core);
    this.#core = undefined;
    this.#instance = undefined;
  }

  #take(bare: Bare, at: string): void {
    if (this.#watched) this.#feed.add({ ...bare, slot: this.slot, callId: this.#id, at } as unknown as Unplaced);
    if (bare.type === "call-end") this.#end(() => this.#answer((bare as unknown as { reply: Reply }).reply));
    if (bare.type === "error") this.#fail(this.#failure((bare as unknown as { error: CoreError }).error));
  }

  #show(): void {
    this.#feed.tell();
    this.#setup.onEvents(this);
  }

  /** Resolves the result; a schema with a `validate` of its own has the last word on the output. */
  #answer(reply: Reply): void {
    const schema = this.#setup.outputSchema;
    if (schema === undefined || reply.output === undefined) return this.#resolve(reply);
    validated(schema, reply.output).then(
      (output) => this.#resolve({ ...reply, output }),
      (cause: unknown) => {
        const message = cause instanceof Error ? cause.message : String(cause);
        const details = { slot: this.slot, callId: this.#id, partial: reply.message, cause };
        this.#reject(new LockgateError("OUTPUT_INVALID", message, { ...details, hint: "the turn is stored; ask for a simpler form" }));
      },
    );
  }

  #failure(error: CoreError): LockgateError {
    if (error.code === "ABORTED") return this.#aborted(error);
    const whole = this.#core?.failure();
    const details = { slot: this.slot, callId: this.#id, partial: error.partial };
    return fromCore(isCoreError(whole) ? whole : error, details);
  }

  #aborted(error?: CoreError): LockgateError {
    const details = { slot: this.slot, callId: this.#id, partial: error?.partial, cause: this.#setup.signal?.reason };
    return new LockgateError("ABORTED", "the call was aborted by its signal", details);
  }

  #fail(error: LockgateError): void {
    if (this.#over) return;
    this.#error = error;
    if (this.#watched && this.#feed.last !== "error") {
      const { code, message, hint, retryable } = error;
      const shown = { code, message, retryable, ...(hint === undefined ? {} : { hint }) };
      this.#feed.add({ type: "error", error: shown, slot: this.slot, callId: this.#id, at: new Date().toISOString() } as unknown as Unplaced);
    }
    this.#end(() => this.#reject(error));
  }

  #end(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#unlisten();
    this.#controller?.abort();
    settle();
    this.#feed.end(this.#error);
    this.#show();
    this.#setup.onEnd();
  }

  #listen(): void {
    const { signal } = this.#setup;
    if (signal === undefined) return;
    const abort = (): void => this.#whileOpen((core) => core.abort());
    signal.addEventListener("abort", abort, { once: true });
    this.#unlisten = () => signal.removeEventListener("abort", abort);
  }

  /** What Rust answers while a tool or a hook of the call runs. */
  #reading<T>(ask: (core: CoreCall) => T | undefined): T {
    let answer: T | undefined;
    this.#whileOpen((core) => void (answer = ask(core)));
    if (answer !== undefined) return answer;
    throw new LockgateError("INPUT_INVALID", "the state of a call can be read only while its tool or middleware runs", {
      hint: "read what you need of context.state before you answer",
    });
  }

  #whileOpen(act: (core: CoreCall, instance: Instance) => void): void {
    const [core, instance] = [this.#core, this.#instance];
    if (this.#over || core === undefined || !instance?.alive) return;
    instance.enter(() => act(core, instance));
  }
}

function notSuspended(): never {
  throw new LockgateError("INPUT_INVALID", "only a tool that runs can be suspended", { hint: "call context.suspend inside execute" });
}
