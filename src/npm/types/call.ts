// A call: its options, the handle of a running call, and its reply.

import type { AgentOptions } from "./agent.js";
import type { AgentEvent } from "./event.js";
import type { Input, Msg, Usage } from "./message.js";
import type { GenerateOptions, Model } from "./model.js";
import type { Ask } from "./permission.js";
import type { Schema } from "./schema.js";
import type { Slot } from "./session.js";

/** The slot and the options of a call, in one object. AgentScope calls it RuntimeContext. */
export interface CallContext extends Slot, CallOptions {}

/** The options of one call. */
export interface CallOptions<S extends Schema = Schema> {
  /** Aborts the call. The partial answer is kept, and `result` rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /** Your id for this call. A second call with the same id returns the stored outcome and does not run. */
  readonly callId?: string | undefined;
  /** Replaces the agent's `overlap` for this call. */
  readonly overlap?: AgentOptions["overlap"];
  /** Replaces the agent's `model` for this call. */
  readonly model?: Model;
  /** Values for the tools and the middleware of this call. They are never stored. */
  readonly attributes?: Attributes;
  /** Structured output: `reply.output` matches this schema, or the call fails with OUTPUT_INVALID. */
  readonly outputSchema?: S;
  /** Options of the model requests of this call. They take precedence over the agent's `generate`. */
  readonly generate?: GenerateOptions;
}

/** Extend this interface to type your attributes: `declare module "lockgate" { interface Attributes { db: Db } }` */
export interface Attributes {
  /** A value under a name of your choice. */
  readonly [name: string]: unknown;
}

/**
 * A running call. It takes its place in the queue when it is created, and runs to its end by itself. A slow, paused or
 * absent reader does not delay it: unread deltas are merged. A call has one reader; for more readers use `attach`.
 * A loop over the call ends after the event `call-end`. After the event `error` it throws that LockgateError. Leaving the
 * loop early stops the call, waits for its commit, and resolves `result`.
 */
export interface Call<Output = unknown> extends AsyncIterable<AgentEvent> {
  /** The id of the call: your `callId`, or a generated one. */
  readonly id: string;
  /** The session of the call. */
  readonly slot: Slot;
  /** The reply. Resolves also for a stopped call (reason "interrupted"). Rejects with a LockgateError if the call fails, and with ABORTED if `signal` fired. Never causes an unhandled rejection. */
  readonly result: Promise<Reply<Output>>;
  /** Stops this call. The partial answer is kept. `message` is what the user says next. */
  stop(message?: Input): void;
  /** After this, leaving the loop or cancelling the response body does not stop the call. */
  detach(): void;
  /** The events as a stream. Cancelling the stream has the effect of leaving the loop. */
  toReadableStream(): ReadableStream<AgentEvent>;
  /**
   * The events as server-sent events, with a heartbeat every 15 seconds. "lockgate" (default) sends AgentEvents, with `seq` as
   * `id`. "ai-sdk" sends the UI message stream v1 that `useChat` reads. `onDisconnect`: whether the call continues (default) or
   * stops when the client disconnects.
   */
  toResponse(protocol?: "lockgate" | "ai-sdk", init?: ResponseInit & { readonly onDisconnect?: "continue" | "stop" }): Response;
}

/** Why a call ended, if it did not fail. */
export type Reason =
  /** The answer of the model is complete. */
  | "stop"
  /** A tool call waits for the approval of a person. */
  | "asking"
  /** A tool call waits for its result from outside. */
  | "suspended"
  /** The call was stopped. */
  | "interrupted"
  /** `maxIterations` was reached. The message is the closing answer. */
  | "max-iterations"
  /** The answer was cut off at the token limit. */
  | "length"
  /** A middleware ended the call. */
  | "middleware"
  /** The model answered without text, also when it was asked again. */
  | "empty";

/** The saved answer of a call. */
export interface Reply<Output = unknown> {
  /** The id of the call. */
  readonly callId: string;
  /** Why the call ended. */
  readonly reason: Reason;
  /** The last message of the model in this call. A message without content if the model gave none. */
  readonly message: Msg;
  /** The text of `message`: its text blocks, joined. */
  readonly text: string;
  /** The messages of this call, with its input. */
  readonly messages: readonly Msg[];
  /** The usage of all model requests of this call, including those for summaries. */
  readonly usage: Usage;
  /** The structured output. Absent if the call had no `outputSchema`, or ended before the output was complete. */
  readonly output?: Output;
  /** The open questions, to be answered with `confirm`. Empty unless `reason` is "asking" or "suspended". */
  readonly asks: readonly Ask[];
  /** The version of the session after this call, as in AgentState. 0 if the call was stopped before its input was stored. */
  readonly version: number;
}
