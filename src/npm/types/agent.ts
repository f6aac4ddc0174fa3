// An agent: the options that it is made with, and its methods. Methods that are asked once and answered once are in protocol/methods.ts.

/// <reference lib="esnext.disposable" preserve="true" />

import type { AgentMethods } from "../protocol/methods.js";
import type { Call, CallOptions, Reply } from "./call.js";
import type { CompactionConfig, MemoryConfig, ToolResultEvictionConfig } from "./compaction.js";
import type { AgentEvent, SessionEvent } from "./event.js";
import type { Input } from "./message.js";
import type { Middleware } from "./middleware.js";
import type { GenerateOptions, Model } from "./model.js";
import type { Answer, PermissionOptions } from "./permission.js";
import type { WorkOptions } from "./planning.js";
import type { InferSchema, Schema } from "./schema.js";
import type { Slot, UserInfo } from "./session.js";
import type { StatePersistence } from "./state.js";
import type { Store } from "./store.js";
import type { Tool, ToolGroup } from "./tool.js";
import type { WorkspaceConfig, WorkspaceFiles } from "./workspace.js";

/** How an agent is made. */
export interface AgentOptions extends WorkOptions {
  /** Part of every key that the agent stores: agents with different names can share a store. */
  readonly name: string;
  /** The instructions at the start of every request. */
  readonly systemPrompt?: string;
  /** What the agent is good for. With `subagents`, the model reads it as the description of `general-purpose`. */
  readonly description?: string;
  /** The model that answers. */
  readonly model: Model;
  /** The model that answers if `model` fails before the first delta of its answer. */
  readonly fallbackModel?: Model;
  /** The tools that the model may call. */
  readonly tools?: readonly Tool[];
  /** Groups of tools that are switched on or off together, per session. A tool in no group is always on. */
  readonly toolGroups?: readonly ToolGroup[];
  /** Adds the tool `reset_equipped_tools`, with which the model switches groups of scope "model". Default false. */
  readonly metaTool?: boolean;
  /** A virtual file system for each user, with the tools `read_file`, `write_file`, `edit_file`, `grep_files`, `glob_files` and `list_files`. Default false. */
  readonly workspace?: boolean | WorkspaceConfig;
  /** After a reply, facts about the user are noted. The instructions of every session of that user contain the notes, and the model reaches them with `memory_search`, `memory_get` and `memory_save`. Default false. */
  readonly memory?: boolean | MemoryConfig;
  /** Adds `session_list`, `session_history` and `session_search`, with which the model reads other sessions of the same user. A session without a user sees only itself, unless the store belongs to one browser. `agents` names other agents in the same store: the model may also read the sessions of this user with them, by the argument `agentId`. Default true. */
  readonly sessionTools?: boolean | { readonly agents: readonly string[] };
  /** What tools may do. A fresh session starts with these permissions; `deny` and `ask` apply in every session, whatever it has stored. Default: approval is needed only for tools that require it themselves. */
  readonly permissions?: PermissionOptions;
  /** Which parts of a session are saved by a call, and which of them a resend rolls back. */
  readonly persistence?: StatePersistence;
  /** Hooks around every call; the first is the outermost. */
  readonly middleware?: readonly Middleware[];
  /** Default: IndexedDB in a page or worker, files under ./.lockgate in Node, memory (with a `storage` warning) elsewhere. */
  readonly store?: Store;
  /** The session of calls that name no session. Without it such a call is refused with ID_INVALID. */
  readonly defaultSessionId?: string;
  /** If true, a slot without a userId is refused with ID_INVALID. Default false. */
  readonly requireUserId?: boolean;
  /** The most model requests with tools in one call. Then the model is asked once more, without tools, for a closing answer. Retries do not count. Default 10. */
  readonly maxIterations?: number;
  /** The most tool calls of one answer of the model that run. Those beyond get a result that says so. Default 64. */
  readonly maxToolCalls?: number;
  /** Keeps conversations within the model's window by summarising their older part, or leaving it out if there is no summary. Default: only when a request overflows. False: never. True or a config: also when a trigger is reached. */
  readonly compaction?: boolean | CompactionConfig;
  /** Shows the model only a part of very large tool results, with a path under which it can read the whole. Default false. */
  readonly toolResultEviction?: boolean | ToolResultEvictionConfig;
  /** Counts the tokens of a text. Default: an estimate. */
  readonly tokenCounter?: (text: string) => number;
  /** What a call does when its session is busy. "queue" (default) waits, "reject" fails with BUSY, "interrupt" stops the running call and waits, "steer" adds the input to the running call. */
  readonly overlap?: "queue" | "reject" | "interrupt" | "steer";
  /** What a turn does if another writer saved the session in the meantime, without the lock. "rebase" (default): both turns stay. "fail": the call fails with SUPERSEDED and its turn stays in the log. "overwrite": this turn is current and the other one becomes a branch. */
  readonly onConflict?: "rebase" | "fail" | "overwrite";
  /** When a call is saved. "exit" (default): its input at the start, and the rest at the end. "step": also after every model reply and every batch of tool calls. */
  readonly durability?: "exit" | "step";
  /** How often what is new in a running answer is stored, in ms: after a crash of the page or the process, at most this much of it is lost. False: never. Default 1_000; 5_000 for stores that several processes or machines share. */
  readonly checkpointMs?: number | false;
  /** The most waiting calls per session; another call fails with BUSY. Default 64. */
  readonly queueLimit?: number;
  /** The most sessions kept in memory; the least recently used are dropped first. Default 1,000 sessions, 64 MB. */
  readonly cache?: { readonly sessions?: number; readonly bytes?: number };
  /** Deadlines in ms. Defaults: model 120_000 to the first byte and 60_000 between bytes, tool 120_000, hook 30_000, store 10_000, lock 60_000, call none. */
  readonly timeouts?: {
    /** From the request to the first byte of the answer. If it is shorter than 60_000, it is also the deadline between bytes. */
    readonly model?: number;
    /** For one call of a tool that has no `timeoutMs`. */
    readonly tool?: number;
    /** For one hook of a middleware. After it the call fails with MIDDLEWARE; for `onEnd` that is only a warning. */
    readonly hook?: number;
    /** For one operation of the store. */
    readonly store?: number;
    /** For waiting until another tab or process has finished its call on the session. */
    readonly lock?: number;
    /** For a whole call, from its place in the queue to its end. */
    readonly call?: number;
  };
  /** How a model request is retried that fails before its first delta. Default 3 attempts, with waits from 1_000 to 30_000 ms. */
  readonly retries?: { readonly attempts?: number; readonly initialMs?: number; readonly maxMs?: number };
  /**
   * Node, Bun and Deno: signals before which running calls are saved. True (default) is SIGTERM and SIGINT. While calls run and the
   * program has no listener of its own for the signal, the calls are saved as by `shutdown()` within 5 s, and then the same signal ends
   * the process; a second signal ends it at once. With a listener of its own, the program decides: what is new in the answers is stored, and nothing else happens. Pages and edge
   * workers get no signals.
   */
  readonly shutdownSignals?: boolean | readonly string[];
  /** Options of every model request, unless a call sets others. */
  readonly generate?: GenerateOptions;
  /** Whether sessions are locked against other tabs. Default true. */
  readonly crossTab?: boolean;
  /** Several processes or machines serve this agent: a store that is not shared by a cluster is refused with OPTIONS. Default false. */
  readonly replicas?: boolean;
}

/** One agent serves many sessions, and runs the calls of each session one at a time. */
export interface Agent extends AgentMethods, AsyncDisposable {
  /** The agent's name, as `createAgent` was given it. */
  readonly name: string;
  /** Sends an input to a session and waits for the saved answer. */
  call<S extends Schema = never>(input: Input, context: Slot & CallOptions<S>): Promise<Reply<InferSchema<S>>>;
  /** Only with `defaultSessionId`, else ID_INVALID. */
  call(input: Input): Promise<Reply>;
  /** The same call, as events. */
  stream<S extends Schema = never>(input: Input, context: Slot & CallOptions<S>): Call<InferSchema<S>>;
  /** Only with `defaultSessionId`, else ID_INVALID. */
  stream(input: Input): Call;
  /** Answers approvals that a call asked for, or hands in results of suspended tools, and continues the turn. It may answer only some of them. */
  confirm<S extends Schema = never>(slot: Slot, answers: readonly Answer[], options?: CallOptions<S>): Call<InferSchema<S>>;
  /** Continues a turn that a shutdown or a crash cut off. */
  resume<S extends Schema = never>(slot: Slot, options?: CallOptions<S>): Call<InferSchema<S>>;
  /**
   * Answers a question again, from the state before it was asked: the question with the message id `from`, otherwise the last one. `input` replaces the
   * question. The old answer and everything after it stay as a branch. If the new answer fails or is aborted, the old path stays current. Files, memory
   * and effects of tools are not undone. NO_ANCHOR if there is no question yet, INPUT_INVALID if `from` is no question of the current path, PENDING_TOOLS
   * while tool calls wait for an answer.
   */
  resend<S extends Schema = never>(slot: Slot, options?: CallOptions<S> & { readonly input?: Input; readonly from?: string }): Call<InferSchema<S>>;
  /** Follows the running call of a session, here or in another tab, from the event after number `after`. Null if none runs. Leaving the loop does not stop the call. */
  attach(slot: Slot, options?: { readonly after?: number }): Promise<Call | null>;
  /** Events of a session, of a user's sessions, or of all sessions, as they happen, including events of other tabs. The events of a running call start with its first. If the tab or the worker that runs a call is gone, or does not respond for ten seconds, the call ends with an `error` event, SUPERSEDED. Calls of other processes that share the store are not heard. The returned function ends the subscription. */
  subscribe(
    of: Slot | { readonly userId: string | null } | "everyone",
    listener: (event: AgentEvent | SessionEvent) => void,
  ): () => void;
  /** The users that have sessions, in the order of their keys. `after` is the cursor of the last user seen; `limit` is 100 by default. */
  listUsers(page?: { readonly after?: string; readonly limit?: number }): Promise<UserInfo[]>;
  /** All sessions of a user as JSON lines: one session per line, as `exportSession` writes it. */
  exportUser(userId: string | null): ReadableStream<string>;
  /** The files of the users. */
  readonly files: WorkspaceFiles;
  /** Accepts no new calls. Running calls stop at the next boundary, are saved and marked shutdown_interrupted, and reject with SHUTTING_DOWN (retryable, `partial` set). After `timeoutMs` they stop wherever they are. */
  shutdown(options?: { readonly timeoutMs?: number }): Promise<void>;
  /** Resolves when every call that began earlier, and the work after it (search index, memory, subagents), has ended. Never rejects. At the edge, give it to `waitUntil`. */
  drain(): Promise<void>;
  /** Shuts down, waits for the calls, and frees the agent. Closes the store only if the agent made it itself. `await using` does this. */
  close(): Promise<void>;
}
