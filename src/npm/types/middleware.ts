// Middleware: hooks around a call, and what they are given.

import type { Attributes, Reply } from "./call.js";
import type { Block, Msg } from "./message.js";
import type { ModelRequest } from "./model.js";
import type { Slot } from "./session.js";
import type { AgentState } from "./state.js";
import type { ToolContext } from "./tool.js";
import type { LockgateError } from "../errors.js";

/** The call in which a hook or a tool runs. */
export interface RunContext extends Slot {
  /** The id of the call. */
  readonly callId: string;
  /** Aborts when the call is stopped or has ended. */
  readonly signal: AbortSignal;
  /** The attributes that the caller passed. */
  readonly attributes: Attributes;
  /** The state of the session as this call sees it, with its changes so far. Each read returns the state of that moment, and a field that is not read costs nothing. It can be read while the tool or hook runs, after the call was admitted. */
  readonly state: AgentState;
}

/** Hooks around a call. A hook may observe, change what it is given, or stop the call. A hook that throws, or does not settle within `timeouts.hook`, fails the call with MIDDLEWARE. A call that is stopped does not wait for its hooks. */
export interface Middleware {
  /** The name in errors. */
  readonly name: string;
  /** Gets the input messages; may return others. */
  onCall?(input: readonly Msg[], context: RunContext): readonly Msg[] | void | Promise<readonly Msg[] | void>;
  /** Returns the system prompt, given the prompt of the previous middleware. Runs once per call, and again if plan mode is switched in the call. */
  systemPrompt?(prompt: string, context: RunContext): string | Promise<string>;
  /**
   * Gets the messages that the model is shown, before each model call, and may return the messages and the text of a summary to keep from now on: an
   * application's own compaction. Messages with a known id and the same content are kept as they are; others are stored with the revision. A summary
   * stands before the messages, in place of the summary that they begin with; "" removes it. The log stays whole, and `undoCompaction` takes a revision
   * back. Each tool call must have its result right after it, and no id may occur twice.
   */
  reviseContext?(
    context: readonly Msg[],
    run: RunContext,
  ): { readonly context?: readonly Msg[]; readonly summary?: string } | void | Promise<{ readonly context?: readonly Msg[]; readonly summary?: string } | void>;
  /** May change this one request, or answer in place of the model. */
  beforeModel?(
    request: ModelRequest,
    context: RunContext,
  ): ModelRequest | { stop: string } | void | Promise<ModelRequest | { stop: string } | void>;
  /** May change an answer before it is stored, or replace it and end the call. */
  afterModel?(message: Msg, context: RunContext): Msg | { stop: string } | void | Promise<Msg | { stop: string } | void>;
  /** May change the input of a tool call, which is then checked again, or deny the call. */
  beforeTool?(
    call: { name: string; input: unknown },
    context: ToolContext,
  ): { input?: unknown } | { deny: string } | void | Promise<{ input?: unknown } | { deny: string } | void>;
  /** May change a tool result before the model reads it. */
  afterTool?(
    result: Extract<Block, { type: "tool_result" }>,
    context: ToolContext,
  ): Extract<Block, { type: "tool_result" }> | void | Promise<Extract<Block, { type: "tool_result" }> | void>;
  /** Gets the outcome of the call after it is saved. If it throws or does not settle in time, that is only a warning. If the call is stopped while it runs, the call ends with its stored outcome; if it was stopped before, it waits for this hook at most a second. */
  onEnd?(outcome: { readonly reply: Reply } | { readonly error: LockgateError }, context: RunContext): void | Promise<void>;
}
