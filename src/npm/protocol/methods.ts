// The table of methods: every method of an agent that is asked once and answered once, and how it travels over HTTP.
//
// To add a method, write its signature in `AgentMethods` and its row in `METHODS`. The edge and `remoteAgent` then have it.
// Then the compiler reports what is missing: the method of `agent/agent.ts`, and the export of the wasm that it calls.

import type { CompactionReport, ContextReport } from "../types/compaction.js";
import type { Input, InputMsg, Msg } from "../types/message.js";
import type { Ask, PermissionContext, PermissionMode } from "../types/permission.js";
import type { WorkMethods } from "../types/planning.js";
import type { Branch, SearchHit, SearchOptions, SessionInfo, Slot } from "../types/session.js";
import type { AgentState } from "../types/state.js";
import type { StorageReport } from "../types/store.js";
import type { ToolInfo } from "../types/tool.js";
import type { WorkspaceFiles } from "../types/workspace.js";

/** The methods of an agent that are asked once and answered once. */
export interface AgentMethods extends WorkMethods {
  /** The open questions of a session: tool calls that wait for an approval or for a result. */
  asks(slot: Slot): Promise<readonly Ask[]>;
  /** Stops the running call of a session. True if a call was told to stop. `message` is what the user says next. */
  interrupt(slot: Slot, message?: Input): Promise<boolean>;
  /** The state of a session. A session that does not exist has a fresh state of version 0, which is not stored. */
  getAgentState(slot: Slot): Promise<AgentState>;
  /** Replaces the state of a session. SUPERSEDED if the session has changed since `state.revision`. Messages of the log stay where they are; changed ones get new ids. A changed `summary` can be undone like any other. */
  putAgentState(slot: Slot, state: AgentState): Promise<void>;
  /** Changes what the tools of a session may do where no rule applies. Creates the session if it does not exist. */
  setPermissionMode(slot: Slot, mode: PermissionMode): Promise<void>;
  /** Replaces what the tools of a session may do. Rules of `AgentOptions.permissions` that deny or ask still apply. */
  replacePermissions(slot: Slot, context: PermissionContext): Promise<void>;
  /** Empties the context of a session. The log keeps every message. */
  clearContext(slot: Slot): Promise<void>;
  /** Summarises the older part of the context now. The log keeps every message. If the summary fails, nothing changes and the promise rejects with COMPACTION_FAILED. */
  compact(slot: Slot): Promise<CompactionReport>;
  /** Shows the model again the messages that the last summary replaced. Later messages stay. Without a summary nothing changes. */
  undoCompaction(slot: Slot): Promise<void>;
  /** What the next model request would contain, part by part, with estimated tokens. */
  inspect(slot: Slot): Promise<ContextReport>;
  /** Adds messages to the log and the context without asking the model. */
  append(
    slot: Slot,
    messages: readonly (Omit<InputMsg, "role"> & { readonly role: "user" | "assistant" })[],
  ): Promise<readonly Msg[]>;
  /** The session as lists show it, or null if it does not exist. */
  session(slot: Slot): Promise<SessionInfo | null>;
  /** Gives a session a title. */
  renameSession(slot: Slot, title: string): Promise<void>;
  /** The session as text: as our own document (the whole log with its branches, summaries and open questions, and the state), as the AgentState document of AgentScope Java, or as Markdown for people. */
  exportSession(slot: Slot, format?: "lockgate" | "agentscope" | "markdown"): Promise<string>;
  /** Creates a session from a document of `exportSession`, or from an AgentState document of AgentScope Java. Refuses to replace a session that has messages. */
  importSession(slot: Slot, text: string): Promise<SessionInfo>;
  /** The sessions of a user, newest first. `after` is the cursor of the last session seen; `limit` is 100 by default. */
  listSessions(
    userId: string | null,
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<SessionInfo[]>;
  /** Messages from the log, uncompacted, oldest first: the newest 1000 before the message `before`, of the current branch or of another. [] for a session that does not exist. */
  history(slot: Slot, page?: { readonly before?: string; readonly limit?: number; readonly branch?: string }): Promise<Msg[]>;
  /** The messages that match the words best, in all sessions of the user or in one; 10 by default. Without a userId a sessionId is required, unless the store belongs to one browser. */
  search(query: string, options: SearchOptions): Promise<SearchHit[]>;
  /** Every branch of a session, each after the branch that it starts from. [] for a session that does not exist. */
  branches(slot: Slot): Promise<Branch[]>;
  /** Makes another branch the current one, with the state that it had. INPUT_INVALID if there is no such branch. */
  switchBranch(slot: Slot, branch: string): Promise<void>;
  /** Copies a session: all of it, or up to and including the message `upTo` of any branch. Refuses to replace a session that has messages. */
  fork(slot: Slot, to: Slot, options?: { readonly upTo?: string }): Promise<SessionInfo>;
  /** Repairs a session that fails with STORE_CORRUPT. Its head is rebuilt from the log, an entry that cannot be read becomes a note, and the context is the whole log. Every byte is kept. */
  repairSession(slot: Slot): Promise<SessionInfo>;
  /** Deletes a session, if it exists. A running call ends unsaved; waiting calls end with NO_SUCH_SESSION. */
  deleteSession(slot: Slot): Promise<void>;
  /** Deletes everything that a user has. Running calls end unsaved; waiting calls end with NO_SUCH_SESSION. */
  deleteUser(userId: string | null): Promise<void>;
  /** Every tool of a session, the agent's and the built-in ones, and whether the model is given it now. Without a slot, or if the session does not exist: the tools of a fresh session. */
  tools(slot?: Slot): Promise<readonly ToolInfo[]>;
  /** How safely the store keeps its data. */
  storage(): Promise<StorageReport>;
}

/** Every method of the table: the methods of the agent, and the methods of `agent.files` under other names. */
export interface Methods extends AgentMethods {
  /** `agent.files.list`. */
  listFiles: WorkspaceFiles["list"];
  /** `agent.files.read`. */
  readFile: WorkspaceFiles["read"];
  /** `agent.files.write`. */
  writeFile: WorkspaceFiles["write"];
  /** `agent.files.delete`. */
  deleteFile: WorkspaceFiles["delete"];
}

/** The name of a method of the table. */
export type MethodName = keyof Methods;
/** The arguments of each method. */
export type Arguments = { readonly [N in MethodName]: Parameters<Methods[N]> };
/** What each method answers. */
export type Answers = { readonly [N in MethodName]: Awaited<ReturnType<Methods[N]>> };

/** GET changes nothing; every other verb changes something. */
type Verb = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * How one argument travels. Members are in the query of a GET or DELETE, and in the JSON body of the other verbs.
 * A userId is never sent: the worker knows the user.
 * - ":id": a slot, whose sessionId is in the path
 * - ":user": a userId, which is left out
 * - another text: a value, as the member of that name
 * - `{ slot }`: a slot, whose sessionId is the member of that name
 * - `{ members }`: an object; its members keep their names. "number" marks numbers, because a query is text.
 */
export type ArgumentOnWire<A = Readonly<Record<string, unknown>>> =
  | string
  | { readonly slot: string }
  | { readonly members: { readonly [M in Exclude<keyof NonNullable<A>, "userId">]-?: "text" | "number" } };

/**
 * What a caller of a worker may do. "talk": calls, answers, and reading one's own; "manage": everything else that changes
 * sessions or files; "permissions": changing what tools may do, and leaving plan mode.
 */
export type Right = "talk" | "manage" | "permissions";

/** Verb, path, the right that a caller needs, how each argument travels, and "text" if the answer is not JSON. `:id` in a path is a session. */
export type Row<A extends readonly unknown[] = readonly Readonly<Record<string, unknown>>[]> = readonly [
  verb: Verb,
  path: string,
  right: Right,
  args: { readonly [I in keyof A]-?: ArgumentOnWire<A[I]> },
  answer?: "text",
];

/** A table with one row for each method. */
export type Table = { readonly [N in MethodName]: Row<Arguments[N]> };

/** The table. It does not compile if a method has no row, or if a row has no right or lacks an argument. */
export const METHODS = {
  listSessions: ["GET", "sessions", "talk", [":user", { members: { after: "text", limit: "number" } }]],
  session: ["GET", "sessions/:id", "talk", [":id"]],
  renameSession: ["PATCH", "sessions/:id", "manage", [":id", "title"]],
  deleteSession: ["DELETE", "sessions/:id", "manage", [":id"]],
  history: ["GET", "sessions/:id/history", "talk", [":id", { members: { before: "text", limit: "number", branch: "text" } }]],
  asks: ["GET", "sessions/:id/asks", "talk", [":id"]],
  append: ["POST", "sessions/:id/append", "manage", [":id", "messages"]],
  interrupt: ["POST", "sessions/:id/interrupt", "talk", [":id", "message"]],
  getAgentState: ["GET", "sessions/:id/state", "talk", [":id"]],
  putAgentState: ["PUT", "sessions/:id/state", "manage", [":id", "state"]],
  clearContext: ["POST", "sessions/:id/clear", "manage", [":id"]],
  compact: ["POST", "sessions/:id/compact", "manage", [":id"]],
  undoCompaction: ["POST", "sessions/:id/undo-compaction", "manage", [":id"]],
  setPermissionMode: ["PUT", "sessions/:id/permission-mode", "permissions", [":id", "mode"]],
  replacePermissions: ["PUT", "sessions/:id/permissions", "permissions", [":id", "context"]],
  enterPlanMode: ["POST", "sessions/:id/plan", "manage", [":id"]],
  exitPlanMode: ["DELETE", "sessions/:id/plan", "permissions", [":id"]],
  branches: ["GET", "sessions/:id/branches", "talk", [":id"]],
  switchBranch: ["PUT", "sessions/:id/branch", "manage", [":id", "branch"]],
  fork: ["POST", "sessions/:id/fork", "manage", [":id", { slot: "to" }, { members: { upTo: "text" } }]],
  inspect: ["GET", "sessions/:id/inspect", "talk", [":id"]],
  repairSession: ["POST", "sessions/:id/repair", "manage", [":id"]],
  exportSession: ["GET", "sessions/:id/export", "talk", [":id", "format"], "text"],
  importSession: ["POST", "sessions/:id/import", "manage", [":id", "text"]],
  search: ["GET", "search", "talk", ["query", { members: { sessionId: "text", limit: "number" } }]],
  deleteUser: ["DELETE", "user", "manage", [":user"]],
  listFiles: ["GET", "files", "talk", [":user", "path"]],
  readFile: ["GET", "file", "talk", [":user", "path"]],
  writeFile: ["PUT", "file", "manage", [":user", "path", "text"]],
  deleteFile: ["DELETE", "file", "manage", [":user", "path"]],
  tools: ["GET", "tools", "talk", [{ slot: "sessionId" }]],
  storage: ["GET", "storage", "talk", []],
} as const satisfies Table;

/** The routes of calls, streams and `useChat`, which are not methods of the table: verb, path, and the right that a caller needs. `edge/routes.ts` has code for each. */
export const STREAMS = {
  stream: ["POST", "sessions/:id/messages", "talk"],
  confirm: ["POST", "sessions/:id/answers", "talk"],
  resend: ["POST", "sessions/:id/resend", "talk"],
  resume: ["POST", "sessions/:id/resume", "talk"],
  attach: ["GET", "sessions/:id/stream", "talk"],
  subscribe: ["GET", "events", "talk"],
  exportUser: ["GET", "export", "talk"],
  chat: ["POST", "chat", "talk"],
  chatMessages: ["GET", "chat/:id", "talk"],
  chatStream: ["GET", "chat/:id/stream", "talk"],
  chatStop: ["POST", "chat/:id/stop", "talk"],
} as const satisfies Readonly<Record<string, readonly [verb: Verb, path: string, right: Right]>>;

/** The name of a route that is not a method of the table. */
export type StreamName = keyof typeof STREAMS;
