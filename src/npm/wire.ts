// How an agent is spoken to over HTTP: one table for the worker that answers and the client that asks.

import { CODES, LockgateError } from "./errors.js";
import type { ErrorCode, Msg, Slot } from "./types.js";

/** Verb and path of everything that is asked and answered once. `:id` is a session. */
export const ROUTES = {
  listSessions: ["GET", "sessions"],
  session: ["GET", "sessions/:id"],
  renameSession: ["PATCH", "sessions/:id"],
  deleteSession: ["DELETE", "sessions/:id"],
  history: ["GET", "sessions/:id/history"],
  asks: ["GET", "sessions/:id/asks"],
  append: ["POST", "sessions/:id/append"],
  interrupt: ["POST", "sessions/:id/interrupt"],
  getAgentState: ["GET", "sessions/:id/state"],
  putAgentState: ["PUT", "sessions/:id/state"],
  clearContext: ["POST", "sessions/:id/clear"],
  compact: ["POST", "sessions/:id/compact"],
  undoCompaction: ["POST", "sessions/:id/undo-compaction"],
  setPermissionMode: ["PUT", "sessions/:id/permission-mode"],
  replacePermissions: ["PUT", "sessions/:id/permissions"],
  enterPlanMode: ["POST", "sessions/:id/plan"],
  exitPlanMode: ["DELETE", "sessions/:id/plan"],
  branches: ["GET", "sessions/:id/branches"],
  switchBranch: ["PUT", "sessions/:id/branch"],
  fork: ["POST", "sessions/:id/fork"],
  inspect: ["GET", "sessions/:id/inspect"],
  repairSession: ["POST", "sessions/:id/repair"],
  exportSession: ["GET", "sessions/:id/export"],
  importSession: ["POST", "sessions/:id/import"],
  search: ["GET", "search"],
  deleteUser: ["DELETE", "user"],
  listFiles: ["GET", "files"],
  readFile: ["GET", "file"],
  writeFile: ["PUT", "file"],
  deleteFile: ["DELETE", "file"],
  storage: ["GET", "storage"],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

/** Those that are answered with events, or with bytes as they come. */
export const STREAMS = {
  stream: ["POST", "sessions/:id/messages"],
  confirm: ["POST", "sessions/:id/answers"],
  resend: ["POST", "sessions/:id/resend"],
  resume: ["POST", "sessions/:id/resume"],
  attach: ["GET", "sessions/:id/stream"],
  subscribe: ["GET", "events"],
  exportUser: ["GET", "export"],
  chat: ["POST", "chat"],
  chatMessages: ["GET", "chat/:id"],
  chatStream: ["GET", "chat/:id/stream"],
  chatStop: ["POST", "chat/:id/stop"],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

export type RouteName = keyof typeof ROUTES;
export type StreamName = keyof typeof STREAMS;

/** An error on the wire. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
  readonly retryable: boolean;
  readonly hint?: string;
  readonly callId?: string;
  readonly slot?: Slot;
  readonly partial?: Msg;
  /** Where a turn that was cut off can be read. */
  readonly read?: string;
}

/** An error as it is answered with. Of what is not ours nothing is told: it may hold anything. */
export function toWire(error: unknown): WireError {
  if (!LockgateError.isInstance(error)) {
    const { status, retryable } = CODES.INTERNAL;
    return { code: "INTERNAL", message: "something failed in the worker", status, retryable, hint: "its log may say what" };
  }
  const { code, message, status, retryable, callId, slot, partial } = error;
  return {
    code, message, status, retryable,
    hint: error.hint ?? hintOf(code),
    ...(callId === undefined || callId === "" ? {} : { callId }),
    ...(slot === undefined ? {} : { slot }),
    ...(partial === undefined ? {} : { partial }),
  };
}

/** Whoever reads an answer of a worker has nothing else to go by. */
function hintOf(code: ErrorCode): string {
  if (code === "NO_SUCH_SESSION") return "it was never there, or is deleted: list the sessions";
  return CODES[code].retryable ? "try again" : "see the code";
}

/** An error as it was meant, from what was answered. */
export function fromWire(wire: Partial<WireError>, fallback: ErrorCode, slot?: Slot): LockgateError {
  const code = wire.code !== undefined && wire.code in CODES ? wire.code : fallback;
  const { message = "the worker did not say why", hint, callId, partial } = wire;
  return new LockgateError(code, message, { hint, callId, partial, slot: slot ?? wire.slot });
}

/** The path of a route, with the session in it. */
export function pathOf(path: string, sessionId?: string): string {
  if (!path.includes(":id")) return path;
  // An address cannot hold these two, however they are written.
  if (sessionId === undefined || sessionId === "" || sessionId === "." || sessionId === "..") {
    throw new LockgateError("ID_INVALID", "that sessionId cannot stand in an address", { hint: "use another, such as crypto.randomUUID()" });
  }
  return path.replace(":id", encodeURIComponent(sessionId));
}
