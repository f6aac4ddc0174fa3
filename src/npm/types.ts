// Every public data type: written by hand, and compared by the compiler with what Rust writes (tests/contract).

import type { Branching, StatePersistence } from "./branch-types.js";
import type { CompactionConfig, CompactionReport, ContextReport, MemoryConfig, ToolResultEvictionConfig } from "./context-types.js";
import type { LockgateError } from "./errors.js";
import type { Block, Input, InputMsg, Msg, Usage } from "./message-types.js";
import type { GenerateOptions, Model, ModelRequest } from "./model-types.js";
import type { Answer, Ask, PermissionContext, PermissionMode, PermissionOptions } from "./permission-types.js";
import type { SearchHit, SearchOptions } from "./search.js";
import type { StorageReport, Store } from "./store-types.js";
import type { WorkMethods, WorkOptions } from "./work-types.js";
import type { WorkspaceConfig, WorkspaceFiles } from "./workspace-types.js";

export type { Branch, StatePersistence } from "./branch-types.js";
export type * from "./context-types.js";
export type * from "./message-types.js";
export type * from "./model-types.js";
export type * from "./permission-types.js";
export type { SearchHit } from "./search.js";
export type * from "./store-types.js";
export type * from "./work-types.js";
export type * from "./workspace-types.js";

declare const opaque: unique symbol;

/** Whose conversation, and which one. No userId (or null) is the anonymous user: two such sessions share nothing, unless the store is one browser's own. `userId: undefined` as a present key is ID_INVALID: say null, or leave it out. */
export interface Slot {
  readonly sessionId: string;
  readonly userId?: string | null;
}

// ---------------------------------------------------------------- the agent

/** How an agent is made. */
export interface AgentOptions extends WorkOptions {
  /** Names the agent in every key it stores: agents of different names share a store without meeting. */
  readonly name: string;
  /** The instructions that every request begins with. */
  readonly systemPrompt?: string;
  /** What the agent is good for, for whoever chooses among agents. */
  readonly description?: string;
  /** Who answers. */
  readonly model: Model;
  /** Asked where the model fails before anything of its answer was seen. */
  readonly fallbackModel?: Model;
  /** What the model may call. */
  readonly tools?: readonly Tool[];
  /** Tools that sessions have on or off together; a tool in no group is always on. */
  readonly toolGroups?: readonly ToolGroup[];
  /** Adds the tool `reset_equipped_tools`, with which the model switches groups of scope "model". Default false. */
  readonly metaTool?: boolean;
  /** A virtual file system for each user, and the tools `read_file`, `write_file`, `edit_file`, `grep_files`, `glob_files` and `list_files`. Default false. */
  readonly workspace?: boolean | WorkspaceConfig;
  /** Facts about each user are noted after the reply, told in the instructions of every session of theirs, and reached with `memory_search`, `memory_get` and `memory_save`. Default false. */
  readonly memory?: boolean | MemoryConfig;
  /** Adds session_list, session_history and session_search: the model reads what its user said before; a session without a user sees only itself, unless one browser keeps it. Default true. */
  readonly sessionTools?: boolean;
  /** What tools may do. A fresh session begins with it; its `deny` and `ask` count in every session, whatever is stored there. Not given: only tools that ask themselves are asked about. */
  readonly permissions?: PermissionOptions;
  /** Which parts of a session a resend rolls back and a call's save keeps. Default: all. */
  readonly persistence?: StatePersistence;
  /** Hooks around every call, outermost first. */
  readonly middleware?: readonly Middleware[];
  /** Default: IndexedDB in a page or worker, files under ./.lockgate in Node, memory (with a `storage` warning) elsewhere. */
  readonly store?: Store;
  /** The session of a call that names none. Unset: such a call is refused with ID_INVALID; there is no hidden default. */
  readonly defaultSessionId?: string;
  /** True: a slot without a userId is refused with ID_INVALID. Default false. */
  readonly requireUserId?: boolean;
  /** How often one call asks the model before it closes. Default 10. */
  readonly maxIterations?: number;
  /** Keeps conversations within the model's window by summarising their older part. Not given: only when a request overflows; false: never; true or a config: also by trigger. */
  readonly compaction?: boolean | CompactionConfig;
  /** Shows huge results of tools only in part; all of it can be read by its path. Default false. */
  readonly toolResultEviction?: boolean | ToolResultEvictionConfig;
  /** Counts the tokens of a text, in place of our estimate. */
  readonly tokenCounter?: (text: string) => number;
  /** What a call does that finds its session busy: wait its turn ("queue", the default), fail with BUSY, or interrupt the running call and wait its turn. */
  readonly overlap?: "queue" | "reject" | "interrupt" | "steer";
  /** A turn that meets another's, saved meanwhile by somebody who did not have the lock. "rebase" (default): both survive; "fail": SUPERSEDED, the turn kept in the log; "overwrite": ours is current, theirs a branch. */
  readonly onConflict?: "rebase" | "fail" | "overwrite";
  /** "exit" (default): the input first, then one commit per call; "step": also after every model reply and tool batch. */
  readonly durability?: "exit" | "step";
  /** Waiting calls per session, then BUSY. Default 64. */
  readonly queueLimit?: number;
  /** Sessions kept in memory, least recently used first. Default 1,000 sessions, 64 MB. */
  readonly cache?: { readonly sessions?: number; readonly bytes?: number };
  /** In ms. Defaults: model 120_000 to the first byte and 60_000 idle, tool 120_000, store 10_000, lock 60_000, call none. */
  readonly timeouts?: {
    readonly model?: number;
    readonly tool?: number;
    readonly store?: number;
    readonly lock?: number;
    readonly call?: number;
  };
  /** Of a model that fails before its first delta. Default 3 attempts, waiting 1_000 to 30_000 ms. */
  readonly retries?: { readonly attempts?: number; readonly initialMs?: number; readonly maxMs?: number };
  /** How the model is asked, unless a call says otherwise. */
  readonly generate?: GenerateOptions;
  /** Whether sessions are locked against other tabs. On where Web Locks exist. */
  readonly crossTab?: boolean;
}

/** What the reference calls RuntimeContext. */
export interface CallContext extends Slot, CallOptions {}

/** What one call may have of its own. */
export interface CallOptions<S extends Schema = Schema> {
  /** Aborts the call: what was said is kept, and `result` rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /** A caller's id for this call. The same id again returns the stored outcome instead of running twice. */
  readonly callId?: string | undefined;
  /** Instead of the agent's own, for this call only. */
  readonly overlap?: AgentOptions["overlap"];
  /** Instead of the agent's own, for this call only. */
  readonly model?: Model;
  /** Free attributes for tools of this call; never stored. */
  readonly attributes?: Attributes;
  /** Structured output: `reply.output` has this form, or the call fails with OUTPUT_INVALID. */
  readonly outputSchema?: S;
  /** Over the agent's own. */
  readonly generate?: GenerateOptions;
}

/** Yours to extend: `declare module "lockgate" { interface Attributes { db: Db } }` */
export interface Attributes {
  readonly [name: string]: unknown;
}

/** One agent, many sessions, each behind its own gate. */
export interface Agent extends WorkMethods, Branching, AsyncDisposable {
  /** The name it was made with. */
  readonly name: string;
  /** Says something and waits for the saved answer. */
  call<S extends Schema = never>(input: Input, context: Slot & CallOptions<S>): Promise<Reply<InferSchema<S>>>;
  /** Only with defaultSessionId, else ID_INVALID. */
  call(input: Input): Promise<Reply>;
  /** The same call, as events. */
  stream<S extends Schema = never>(input: Input, context: Slot & CallOptions<S>): Call<InferSchema<S>>;
  stream(input: Input): Call;
  /** Settles what a call asked (tool approvals) or hands in results of suspended tools, and goes on. A subset is allowed. */
  confirm<S extends Schema = never>(slot: Slot, answers: readonly Answer[], options?: CallOptions<S>): Call<InferSchema<S>>;
  /** Goes on with what a shutdown or a crash cut off. */
  resume<S extends Schema = never>(slot: Slot, options?: CallOptions<S>): Call<InferSchema<S>>;
  /** Follows the call that runs now, here or in another tab, from the event after `after` on; null if none runs. Watching only: leaving never stops it. */
  attach(slot: Slot, options?: { readonly after?: number }): Promise<Call | null>;
  /** What waits for an answer, as it was asked. */
  asks(slot: Slot): Promise<readonly Ask[]>;
  /** Stops that session's running call (and, if none runs, nothing). True if a call was told. The message is what the user says next. */
  interrupt(slot: Slot, message?: Input): Promise<boolean>;
  /** Of a session that is not there: a fresh state, version 0, not stored. */
  getAgentState(slot: Slot): Promise<AgentState>;
  /** Refused with SUPERSEDED if the session has moved on from `state.revision`. */
  putAgentState(slot: Slot, state: AgentState): Promise<void>;
  /** Changes what the session's tools may do where no rule speaks; a session that is not there is made. */
  setPermissionMode(slot: Slot, mode: PermissionMode): Promise<void>;
  /** Replaces what the session's tools may do. Rules of `AgentOptions.permissions` that deny or ask count all the same. */
  replacePermissions(slot: Slot, context: PermissionContext): Promise<void>;
  /** Empties the context; the log keeps what was said. */
  clearContext(slot: Slot): Promise<void>;
  /** Summarises the older part of the context now. The log stays whole; a summary that fails changes nothing and rejects with COMPACTION_FAILED. */
  compact(slot: Slot): Promise<CompactionReport>;
  /** Shows the model again what the last summary has replaced; what was said since stays. Without a summary nothing changes. */
  undoCompaction(slot: Slot): Promise<void>;
  /** What the next model request would hold, piece by piece, with tokens: for people who want to see. */
  inspect(slot: Slot): Promise<ContextReport>;
  /** Puts messages into the log and the context without asking the model. */
  append(
    slot: Slot,
    messages: readonly (Omit<InputMsg, "role"> & { readonly role: "user" | "assistant" })[],
  ): Promise<readonly Msg[]>;
  /** The session as lists show it, or null if it is not there. */
  session(slot: Slot): Promise<SessionInfo | null>;
  /** Gives the session a title of yours. */
  renameSession(slot: Slot, title: string): Promise<void>;
  /** The session as text: our own document (the whole log and the state), the AgentState document of AgentScope Java, or Markdown to read. */
  exportSession(slot: Slot, format?: "lockgate" | "agentscope" | "markdown"): Promise<string>;
  /** Makes a session of what exportSession gave, or of an AgentState document of AgentScope Java. Refuses to replace a session that has messages. */
  importSession(slot: Slot, text: string): Promise<SessionInfo>;
  /** A user's sessions, newest first; `after` is the cursor of the last one seen, `limit` 100 by default. */
  listSessions(
    userId: string | null,
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<SessionInfo[]>;
  /** The users that have sessions, in the order of their keys; `after` is the cursor of the last one seen, `limit` 100 by default. */
  listUsers(page?: { readonly after?: string; readonly limit?: number }): Promise<UserInfo[]>;
  /** All that a user has said, as JSON lines: one session a line, as exportSession writes it. */
  exportUser(userId: string | null): ReadableStream<string>;
  /** From the log: whole, never compacted. The newest 1000 before the message `before`, oldest first, of the current branch or another; [] for a session that is not there. */
  history(slot: Slot, page?: { readonly before?: string; readonly limit?: number; readonly branch?: string }): Promise<Msg[]>;
  /** The messages that fit the words best, of all the user's sessions or of one; 10 by default. Without a userId name a sessionId, unless one browser keeps the sessions. */
  search(query: string, options: SearchOptions): Promise<SearchHit[]>;
  /** Makes a session usable again that ends in STORE_CORRUPT: its head is made anew from the log, an entry that cannot be read becomes a note, the context is the whole log. Every byte is kept. */
  repairSession(slot: Slot): Promise<SessionInfo>;
  /** Idempotent. A running call ends unsaved; waiting calls end with NO_SUCH_SESSION. */
  deleteSession(slot: Slot): Promise<void>;
  /** Deletes all that a user has, of every kind. Running calls end unsaved; waiting calls end with NO_SUCH_SESSION. */
  deleteUser(userId: string | null): Promise<void>;
  /** Events of a session, of a user's sessions, or of all, as they happen, also those of other tabs; of a call that runs already, from its beginning. The answer ends it. */
  subscribe(
    of: Slot | { readonly userId: string | null } | "everyone",
    listener: (event: AgentEvent | SessionEvent) => void,
  ): () => void;
  /** The users' files. */
  readonly files: WorkspaceFiles;
  /** How safely the store keeps what it is given. */
  storage(): Promise<StorageReport>;
  /** No new calls; running calls stop at the next boundary, are saved and marked shutdown_interrupted, and reject with SHUTTING_DOWN (retryable, `partial` set). After `timeoutMs` they stop wherever they are. */
  shutdown(options?: { readonly timeoutMs?: number }): Promise<void>;
  /** Resolves when every call begun before it is done. Never rejects. Give it to waitUntil at the edge. */
  drain(): Promise<void>;
  /** shutdown, drain, let go; closes only a store we made ourselves. `await using` does this. */
  close(): Promise<void>;
}

/**
 * A call under way. It takes its place in the queue when it is made and runs to its end by itself: reading only
 * watches (unread deltas are merged), so a slow, paused or absent reader never holds the gate. One reader.
 * The loop ends after `call-end`; after an `error` event it throws that LockgateError. Leaving the loop is `stop()`,
 * waits for the commit, and `result` resolves.
 */
export interface Call<Output = unknown> extends AsyncIterable<AgentEvent> {
  /** The callId: yours, or one that was made. */
  readonly id: string;
  /** Whose call it is, and of which session. */
  readonly slot: Slot;
  /** Resolves also when stopped or left (reason "interrupted"); rejects with the LockgateError on failure, with ABORTED if `signal` fired. Never an unhandled rejection. */
  readonly result: Promise<Reply<Output>>;
  /** Interrupts this call: the partial answer is kept, the message is what the user says next. */
  stop(message?: Input): void;
  /** From now on leaving the loop, or a cancelled body, does not stop the call. */
  detach(): void;
  /** The events as a stream; cancelling it is leaving the loop. */
  toReadableStream(): ReadableStream<AgentEvent>;
  /**
   * Server-sent events, with a sign of life every 15 seconds: our own events (`id` is their `seq`), or for "ai-sdk" the
   * UI message stream v1 that `useChat` reads. A client that goes away: "continue" (default) lets the call run on.
   */
  toResponse(protocol?: "lockgate" | "ai-sdk", init?: ResponseInit & { readonly onDisconnect?: "continue" | "stop" }): Response;
}

/** Why a call ended well. */
export type Reason =
  | "stop"
  | "asking"
  | "suspended"
  | "interrupted"
  | "max-iterations"
  | "length"
  | "middleware"
  | "empty";

/** The saved answer of a call. */
export interface Reply<Output = unknown> {
  readonly callId: string;
  readonly reason: Reason;
  readonly message: Msg;
  readonly text: string;
  /** This call's messages, the input included. */
  readonly messages: readonly Msg[];
  /** What its model calls cost, and the summaries made on the way. */
  readonly usage: Usage;
  readonly output?: Output;
  readonly asks: readonly Ask[];
  readonly version: number;
}

// ---------------------------------------------------------------- events

/** What happens in a call, in order; `seq` counts without gaps. */
export type AgentEvent = EventBase &
  (
    | { type: "call-start"; messageIds: readonly string[] }
    | { type: "queued"; ahead: number }
    /** The input is stored. */
    | { type: "accepted"; messages: readonly Msg[] }
    | { type: "model-start"; iteration: number; model: string }
    | { type: "model-end"; iteration: number; usage: Usage; finish: string }
    | { type: "text-start"; id: string; messageId: string }
    | { type: "text-end"; id: string }
    | { type: "text-delta"; id: string; delta: string }
    | { type: "thinking-start"; id: string; messageId: string }
    | { type: "thinking-end"; id: string }
    | { type: "thinking-delta"; id: string; delta: string }
    | { type: "tool-call-start"; toolCallId: string; name: string }
    | { type: "tool-call-delta"; toolCallId: string; delta: string }
    | { type: "tool-call-end"; toolCallId: string; name: string; input: unknown }
    | { type: "tool-start"; toolCallId: string; name: string }
    | { type: "tool-delta"; toolCallId: string; delta: string }
    | {
        type: "tool-end";
        toolCallId: string;
        name: string;
        state: "success" | "error" | "denied" | "interrupted" | "suspended";
        output: readonly Block[];
      }
    | { type: "ask"; asks: readonly Ask[] }
    | { type: "answered"; answers: readonly Answer[] }
    | { type: "compaction-start"; messages: number; tokens: number }
    | { type: "compaction-end"; report: CompactionReport }
    | { type: "compaction-failed"; code: ErrorCode; message: string }
    | { type: "evicted"; toolCallId: string; path: string; chars: number }
    | { type: "overflow-recovered"; before: number; after: number }
    | { type: "tasks"; tasks: readonly Task[] }
    | { type: "plan"; plan: PlanModeContext }
    | { type: "subagent"; taskId: string; agent: string; event: AgentEvent }
    | { type: "retry"; attempt: number; waitMs: number; code: ErrorCode }
    | { type: "fallback"; model: string }
    | { type: "warning"; code: string; message: string }
    | { type: "saved"; version: number; bytes: number }
    | { type: "call-end"; reply: Reply }
    | { type: "error"; error: SerializedError }
  );

/** An error as plain data. */
export interface SerializedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
  readonly retryable: boolean;
  readonly partial?: Msg;
}

/** An event of one type. */
export type AgentEventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

/** What happens to sessions, for whoever subscribes. */
export type SessionEvent = { readonly at: string } & (
  | { type: "session-changed"; slot: Slot; info: SessionInfo }
  | { type: "session-deleted"; slot: Slot }
  | { type: "user-deleted"; userId: string | null }
  | { type: "storage"; report: StorageReport }
);

/** What every event of a call has. */
export interface EventBase {
  readonly slot: Slot;
  readonly callId: string;
  readonly seq: number;
  readonly at: string;
}

// ---------------------------------------------------------------- state

/** All that makes a session restartable. */
export interface AgentState {
  readonly format: number;
  readonly version: number;
  readonly revision: string;
  readonly session_id: string;
  readonly user_id: string | null;
  readonly context: readonly Msg[];
  readonly summary: string;
  readonly permission_context: PermissionContext;
  readonly plan_mode_context: PlanModeContext;
  readonly tasks_context: { readonly tasks: readonly Task[] };
  readonly tool_context: {
    readonly activated_groups: readonly string[];
    readonly activated_skills: readonly string[];
  };
  readonly shutdown_interrupted: boolean;
}

/** Whether a session plans, and where its plan is. */
export interface PlanModeContext {
  readonly plan_active: boolean;
  readonly current_plan_file: string | null;
}

/** A task of the agent's own list. */
export interface Task {
  readonly id: string;
  readonly subject: string;
  readonly state: "pending" | "in_progress" | "completed";
  readonly priority?: "high" | "medium" | "low";
}

/** A user that has sessions; `after` of a list takes the cursor of the last one seen. */
export interface UserInfo {
  readonly userId: string | null;
  readonly sessions: number;
  readonly updatedAt: string;
  readonly cursor: string;
}

/** Lists are newest first; `after` takes the cursor of the last one seen; fewer than `limit` is the end. */
export interface SessionInfo {
  readonly cursor: string;
  readonly sessionId: string;
  readonly userId: string | null;
  readonly title: string;
  readonly summary: string;
  readonly messages: number;
  readonly updatedAt: string;
  readonly createdAt: string;
  readonly running: boolean;
  readonly asking: boolean;
  readonly branches: number;
}

// ---------------------------------------------------------------- tools, permissions, people

/** Standard JSON Schema (Zod 4.2, Valibot 1.2, ArkType 2.1 …). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate?: ((value: unknown) => unknown) | undefined;
    readonly jsonSchema: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

/** A plain JSON Schema object. */
export interface JsonSchema {
  readonly "~standard"?: never;
  readonly type: string;
  readonly [keyword: string]: unknown;
}

/** A schema of either kind. */
// eslint-disable-next-line -- `any` on purpose: it lets the input and output of any schema be inferred.
export type Schema = StandardSchema<any, any> | JsonSchema;

/** What a schema lets through, where it says so. */
export type InferSchema<S> = [S] extends [never]
  ? undefined
  : S extends StandardSchema<any, any>
    ? NonNullable<S["~standard"]["types"]>["output"]
    : unknown;

/** What middleware is told of its call. */
export interface RunContext extends Slot {
  /** The id of the call. */
  readonly callId: string;
  /** Fires when the call is stopped, or over. */
  readonly signal: AbortSignal;
  /** What the caller gave along. */
  readonly attributes: Attributes;
  /** This call's own state, its changes so far included, never another's. Each reading of it is of that moment; a field that nobody reads costs nothing. It can be read while the tool or the middleware runs, of a call that was admitted. */
  readonly state: AgentState;
}

/** What a tool is told of its call, and can do there. */
export interface ToolContext extends RunContext {
  /** The id of this very call of the tool. */
  readonly toolCallId: string;
  /** Shows something while the tool runs, as a `tool-delta` event. */
  emit(partial: string): void;
  /** Ends the turn here; the result comes later through agent.confirm. */
  suspend(reason?: string): never;
}

/** Input is checked as JSON Schema, then by the schema's own `validate`: execute gets its output (defaults applied). */
export interface ToolConfig<I, S extends Schema = Schema> {
  /** What the model calls it by: letters, digits, `_` and `-`. */
  readonly name: string;
  /** What it is good for, to the model. */
  readonly description: string;
  /** The form of its input: JSON Schema, or any Standard Schema. */
  readonly inputSchema: S;
  /**
   * Absent: done outside, the call is suspended and the result handed in with `confirm`. What it answers is shown to the model: text as it is,
   * a block or blocks as they are, anything else as JSON. Of more than a million characters the middle is left out, and a `warning` says so.
   * In the input, an integer beyond `Number.MAX_SAFE_INTEGER` is a BigInt with all its digits (up to 64 bits), every other number a number;
   * a BigInt in the answer is written with all its digits.
   */
  readonly execute?: (input: I, context: ToolContext) => unknown | Promise<unknown>;
  /** Says that it changes nothing: sessions that only explore, or make a plan, may run it. */
  readonly readOnly?: boolean;
  /** Whether a person is asked before it runs, unless a rule or the mode "bypass" allows it. */
  readonly needsApproval?: boolean | ((input: I, context: ToolContext) => boolean | Promise<boolean>);
  /** What the tool itself says of an input, after rules that deny or ask and before those that allow. What it throws, or does not answer in time, denies the call. */
  readonly permission?: (input: I, context: ToolContext) => "allow" | "ask" | "deny" | "pass" | Promise<"allow" | "ask" | "deny" | "pass">;
  /** Whether the content of a rule, as in "tool(content)", fits an input. Without it such a rule denies or asks about every input, and allows none. */
  readonly matches?: (rule: string, input: I) => boolean;
  /** Whether calls of it may run beside others. Default true. */
  readonly parallel?: boolean;
  /** How long it may take, in place of `timeouts.tool`. */
  readonly timeoutMs?: number;
  /** Arguments that you set: the model neither sees nor gives them. */
  readonly presets?: Readonly<Record<string, unknown>>;
}

/** A tool, made by `tool`. */
export interface Tool {
  readonly name: string;
  readonly [opaque]: "tool";
}

/** Tools that sessions have on or off together. */
export interface ToolGroup {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly string[];
  /** Whether a fresh session has it on. Default true. */
  readonly active?: boolean;
  /** Who may switch it. Default "model". */
  readonly scope?: "model" | "host";
}

/** Hooks around a call, outermost first. Each may look, change what it is given, or stop; throwing stops the call with MIDDLEWARE. */
export interface Middleware {
  /** Names it in errors. */
  readonly name: string;
  /** Sees what was said, and may say something else. */
  onCall?(input: readonly Msg[], context: RunContext): readonly Msg[] | void | Promise<readonly Msg[] | void>;
  /** Writes the instructions, once a call, from those that the middleware before it has written. */
  systemPrompt?(prompt: string, context: RunContext): string | Promise<string>;
  /** Changes a request for this once, or says something instead of the model. */
  beforeModel?(
    request: ModelRequest,
    context: RunContext,
  ): ModelRequest | { stop: string } | void | Promise<ModelRequest | { stop: string } | void>;
  /** Changes an answer before it is stored, or puts another in its place and ends the call. */
  afterModel?(message: Msg, context: RunContext): Msg | { stop: string } | void | Promise<Msg | { stop: string } | void>;
  /** Changes the input of a tool call, which is checked again, or denies it. */
  beforeTool?(
    call: { name: string; input: unknown },
    context: ToolContext,
  ): { input?: unknown } | { deny: string } | void | Promise<{ input?: unknown } | { deny: string } | void>;
  /** Changes a result before the model reads it. */
  afterTool?(
    result: Extract<Block, { type: "tool_result" }>,
    context: ToolContext,
  ): Extract<Block, { type: "tool_result" }> | void | Promise<Extract<Block, { type: "tool_result" }> | void>;
  /** Hears how the call ended, once it is saved; what it throws then is only a warning. */
  onEnd?(outcome: { readonly reply: Reply } | { readonly error: LockgateError }, context: RunContext): void | Promise<void>;
}

// ---------------------------------------------------------------- errors

/** What to branch on. */
export type ErrorCode =
  | "OPTIONS" | "ID_INVALID" | "INPUT_INVALID" | "BUSY" | "REENTRANT" | "ABORTED" | "TIMEOUT" | "SUPERSEDED" | "SHUTTING_DOWN"
  | "NO_SUCH_SESSION" | "NO_ANCHOR" | "NOT_ASKING" | "PENDING_TOOLS"
  | "STORE_UNAVAILABLE" | "STORE_TIMEOUT" | "STORE_QUOTA" | "STORE_BLOCKED" | "STORE_CORRUPT" | "STATE_TOO_LARGE" | "STATE_VERSION"
  | "ENGINE_LOAD" | "ENGINE_CRASHED"
  | "MODEL_AUTH" | "MODEL_RATE_LIMIT" | "MODEL_OVERLOADED" | "MODEL_CONTEXT_OVERFLOW" | "MODEL_BAD_REQUEST" | "MODEL_TRUNCATED" | "MODEL_TIMEOUT" | "MODEL_NETWORK" | "MODEL_REFUSED" | "MODEL_FAILED"
  | "OUTPUT_INVALID" | "COMPACTION_FAILED" | "MIDDLEWARE" | "PATH_INVALID" | "INTERNAL";
