// A call as users hold it: its events, its result, and the handles that end it.

import type { CoreCall } from "./core.js";
import { LockgateError, fromCore, isCoreError } from "./errors.js";
import type { CoreError } from "./errors.js";
import type { ModelKind } from "./kinds.js";
import { checkInput, jsonText } from "./options.js";
import { validated } from "./schema.js";
import type { AgentEvent, Attributes, Call, Input, Reply, Schema, Slot, ToolContext } from "./types.js";
import type { Instance } from "./wasm.js";

/** An event as Rust sends it: without the members that all events of a call share. */
type Bare = { readonly type: string; readonly delta?: string; readonly id?: string; readonly toolCallId?: string };

/** What a call is made of. */
export interface CallSetup {
  readonly slot: Slot;
  readonly attributes: Attributes;
  readonly signal: AbortSignal | undefined;
  readonly outputSchema: Schema | undefined;
  /** Whether anybody will read its events. */
  readonly watched: boolean;
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
  readonly #setup: CallSetup;
  #id = "";
  #core: CoreCall | undefined;
  #instance: Instance | undefined;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: LockgateError) => void;
  #unread: AgentEvent[] = [];
  #seq = 0;
  #error: LockgateError | undefined;
  #over = false;
  #detached = false;
  #taken = false;
  #told: (() => void) | undefined;
  #controller: AbortController | undefined;
  #unlisten = (): void => {};

  constructor(setup: CallSetup) {
    this.#setup = setup;
    this.slot = setup.slot;
    this.attributes = setup.attributes;
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
      const core = instance.own(instance.enter(start));
      this.#core = core;
      this.#instance = instance;
      this.#id = core.id;
      this.#listen();
      instance.drive(core.number, { poll: () => this.#poll(core), crashed: (error) => this.#fail(error) });
    } catch (error) {
      this.#fail(error as LockgateError);
    }
  }

  /** What a tool or a hook of this call is given; a hook is told to stop when the call is over. */
  contextOf(toolCallId: string, signal?: AbortSignal): ToolContext {
    const { slot, id: callId, attributes } = this;
    const emit = (partial: string): void => this.emit(toolCallId, String(partial));
    return Object.freeze({ ...slot, callId, attributes, toolCallId, emit, signal: signal ?? this.#ending().signal });
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

  toReadableStream(): ReadableStream<AgentEvent> {
    const events = this[Symbol.asyncIterator]();
    return new ReadableStream({
      async pull(controller) {
        const next = await events.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await events.return?.();
      },
    });
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#taken) {
      throw new LockgateError("INPUT_INVALID", "this call is being read already", { hint: "a call has one reader" });
    }
    this.#taken = true;
    return {
      next: async () => {
        while (this.#unread.length === 0 && !this.#over) {
          await new Promise<void>((resolve) => (this.#told = resolve));
        }
        const event = this.#unread.shift();
        if (event !== undefined) return { done: false, value: { ...event, seq: this.#seq++ } };
        if (this.#error !== undefined) throw this.#error;
        return { done: true, value: undefined };
      },
      return: async () => {
        if (!this.#detached) {
          this.stop();
          await this.result.catch(() => {});
        }
        return { done: true, value: undefined };
      },
    };
  }

  #ending(): AbortController {
    this.#controller ??= new AbortController();
    return this.#controller;
  }

  #poll(core: CoreCall): boolean {
    const batch = core.poll(this.#setup.watched);
    if (batch === undefined) return false;
    const at = new Date().toISOString();
    for (const bare of JSON.parse(batch) as Bare[]) this.#take(bare, at);
    if (this.#over) this.#instance?.free(core);
    this.#told?.();
    return this.#over;
  }

  #take(bare: Bare, at: string): void {
    if (this.#setup.watched) this.#keep(bare, at);
    if (bare.type === "call-end") this.#end(() => this.#answer((bare as unknown as { reply: Reply }).reply));
    if (bare.type === "error") this.#fail(this.#failure((bare as unknown as { error: CoreError }).error));
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

  /** Keeps an event for the reader; a delta right behind one of the same block is joined to it. */
  #keep(bare: Bare, at: string): void {
    const last = this.#unread.at(-1) as (Bare & { delta?: string }) | undefined;
    const joins =
      bare.delta !== undefined && last?.type === bare.type && last.id === bare.id && last.toolCallId === bare.toolCallId;
    if (joins) this.#unread[this.#unread.length - 1] = { ...last, delta: last.delta! + bare.delta! } as unknown as AgentEvent;
    else this.#unread.push({ ...bare, slot: this.slot, callId: this.#id, seq: 0, at } as unknown as AgentEvent);
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
    if (this.#setup.watched && (this.#unread.at(-1)?.type ?? "") !== "error") {
      const { code, message, hint, retryable } = error;
      const shown = { code, message, retryable, ...(hint === undefined ? {} : { hint }) };
      this.#unread.push({ type: "error", error: shown, slot: this.slot, callId: this.#id, seq: 0, at: new Date().toISOString() });
    }
    this.#end(() => this.#reject(error));
  }

  #end(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#unlisten();
    this.#controller?.abort();
    this.#setup.onEnd();
    settle();
    this.#told?.();
  }

  #listen(): void {
    const { signal } = this.#setup;
    if (signal === undefined) return;
    const abort = (): void => this.#whileOpen((core) => core.abort());
    signal.addEventListener("abort", abort, { once: true });
    this.#unlisten = () => signal.removeEventListener("abort", abort);
  }

  #whileOpen(act: (core: CoreCall, instance: Instance) => void): void {
    const [core, instance] = [this.#core, this.#instance];
    if (this.#over || core === undefined || instance === undefined) return;
    instance.enter(() => act(core, instance));
  }
}
