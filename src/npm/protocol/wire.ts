// How arguments, errors and paths travel between a client and the worker. One side writes them, and the other reads them.

import { CODES, LockgateError, isKnownCode } from "../errors.js";
import type { ErrorCode, Msg, Slot } from "../types.js";
import { METHODS } from "./methods.js";
import type { Arguments, MethodName, Row } from "./methods.js";

type Members = Readonly<Record<string, unknown>>;

/** What a client sends for the arguments of a method: the session in the path, and the members of the query or body. */
export function toSent<N extends MethodName>(name: N, given: Arguments[N]): { readonly slot: Slot | undefined; readonly members: Members } {
  let slot: Slot | undefined;
  const members: Record<string, unknown> = {};
  const [, , , formats]: Row = METHODS[name];
  formats.forEach((format, index) => {
    const argument: unknown = given[index];
    if (format === ":id") slot = argument as Slot;
    else if (format === ":user") return;
    else if (typeof format === "string") members[format] = argument;
    else if ("slot" in format) members[format.slot] = (argument as Slot | undefined)?.sessionId;
    else for (const member of Object.keys(format.members)) members[member] = (argument as Members | undefined)?.[member];
  });
  return { slot, members };
}

/**
 * The arguments of a method, from what a client sent. This is the only place where unknown values get the types of the table.
 * It checks nothing: the agent checks its arguments itself, for every caller.
 */
export function argumentsOf<N extends MethodName>(name: N, slot: { readonly userId: string | null; readonly sessionId: string }, args: Members): Arguments[N] {
  const [, , , formats]: Row = METHODS[name];
  const given = formats.map((format): unknown => {
    if (format === ":id") return slot;
    if (format === ":user") return slot.userId;
    if (typeof format === "string") return args[format];
    if ("slot" in format) return args[format.slot] === undefined ? undefined : { userId: slot.userId, sessionId: args[format.slot] };
    const present = Object.entries(format.members).filter(([member]) => args[member] !== undefined);
    return Object.fromEntries(present.map(([member, kind]) => [member, kind === "number" ? toNumber(args[member]) : args[member]]));
  });
  return given as Arguments[N];
}

/** In a query a number is text. */
function toNumber(value: unknown): unknown {
  return typeof value === "string" ? Number(value) : value;
}

/** An error on the wire. */
export interface WireError {
  /** The kind of error. */
  readonly code: ErrorCode;
  /** What happened, for people. */
  readonly message: string;
  /** The HTTP status. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** What to do next. */
  readonly hint?: string;
  /** The call that failed. Absent if there is none. */
  readonly callId?: string;
  /** The session. Absent if there is none. */
  readonly slot?: Slot;
  /** The part of the answer that came before the error. Absent if there is none. */
  readonly partial?: Msg;
  /** Where a client goes on that has missed events: the URL of the history, or of the events of a call that runs. */
  readonly read?: string;
  /** The number of the first event that is kept of a call that runs. Absent if the call does not run. */
  readonly next?: number;
  /** True if the call has ended and its outcome is stored: the same request with the same callId is answered with it. */
  readonly ended?: boolean;
}

/** An error as a client gets it. Errors that are not ours are not shown, because they may contain secrets. */
export function toWire(error: unknown): WireError {
  if (!LockgateError.isInstance(error)) {
    const { status, retryable } = CODES.INTERNAL;
    return { code: "INTERNAL", message: "something failed in the worker", status, retryable, hint: "see the log of the worker" };
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

/** A hint for errors that have none: a client of the worker sees nothing else. */
function hintOf(code: ErrorCode): string {
  if (code === "NO_SUCH_SESSION") return "no such session, or it was deleted: list the sessions";
  return CODES[code].retryable ? "try again" : "see the code";
}

/** The code of a refusal whose body does not say it, or says it about another status. */
function codeOf(status: number): ErrorCode {
  if (status === 401) return "UNAUTHORIZED";
  if (status === 403) return "FORBIDDEN";
  if (status === 429) return "BUSY";
  return status >= 500 ? "STORE_UNAVAILABLE" : "INPUT_INVALID";
}

/** The error that a worker sent with this status; `body` is undefined if it sent no JSON. */
export function fromWire(body: unknown, status: number, slot?: Slot): LockgateError {
  const wire = (typeof body === "object" && body !== null ? body : {}) as Partial<WireError>;
  const isSaid = typeof wire.code === "string" && /^[A-Z][A-Z_]*$/.test(wire.code) && typeof wire.message === "string";
  // `authenticate` may answer with any text and any code.
  const isRefusedCaller = (status === 401 || status === 403) && !(isKnownCode(wire.code) && CODES[wire.code].status === status);
  const code = isSaid && !isRefusedCaller ? wire.code! : codeOf(status);
  const message = isSaid ? wire.message! : `the worker answered with HTTP ${status}`;
  const hint = textIn(wire.hint) ?? hintFor(status);
  const { callId, partial, next, ended } = wire;
  const cause = next === undefined && ended === undefined ? {} : { cause: { next, ended } };
  return new LockgateError(code, message, { hint, callId: textIn(callId), partial, slot: slot ?? wire.slot, unknown: { status, retryable: wire.retryable }, ...cause });
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function hintFor(status: number): string {
  if (status === 401) return "sign in: the worker's authenticate does not know this caller";
  if (status === 403) return "the worker does not let this caller do that";
  return "check that url is a worker that uses handle";
}

/** What an error of a worker says about events that are not kept any more: where the kept ones begin, and whether the call has ended. */
export function missedIn(error: unknown): { readonly next?: number; readonly ended?: boolean } {
  const cause = LockgateError.isInstance(error) && error.code === "SUPERSEDED" ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null) return {};
  const { next, ended } = cause as { readonly next?: unknown; readonly ended?: unknown };
  return { ...(Number.isInteger(next) ? { next: next as number } : {}), ...(ended === true ? { ended } : {}) };
}

/** The path of a route, with the sessionId in place of `:id`. */
export function pathOf(path: string, sessionId?: string): string {
  if (!path.includes(":id")) return path;
  // A URL cannot contain "." and ".." as segments, not even percent-encoded.
  if (sessionId === undefined || sessionId === "" || sessionId === "." || sessionId === "..") {
    throw new LockgateError("ID_INVALID", "this sessionId cannot be part of a URL", { hint: "use another one, such as crypto.randomUUID()" });
  }
  return path.replace(":id", encodeURIComponent(sessionId));
}
