// How arguments, errors and paths travel between a client and the worker. One side writes them, and the other reads them.

import { CODES, LockgateError } from "../errors.js";
import type { ErrorCode, Msg, Slot } from "../types.js";
import { METHODS } from "./methods.js";
import type { Arguments, MethodName, Row } from "./methods.js";

type Members = Readonly<Record<string, unknown>>;

/** What a client sends for the arguments of a method: the session in the path, and the members of the query or body. */
export function toSent<N extends MethodName>(name: N, given: Arguments[N]): { readonly slot: Slot | undefined; readonly members: Members } {
  let slot: Slot | undefined;
  const members: Record<string, unknown> = {};
  const [, , formats]: Row = METHODS[name];
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
  const [, , formats]: Row = METHODS[name];
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
  /** The URL of the history, for a turn that was cut off. */
  readonly read?: string;
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

/** The error that a worker sent. */
export function fromWire(wire: Partial<WireError>, fallback: ErrorCode, slot?: Slot): LockgateError {
  const code = wire.code !== undefined && wire.code in CODES ? wire.code : fallback;
  const { message = "the worker gave no reason", hint, callId, partial } = wire;
  return new LockgateError(code, message, { hint, callId, partial, slot: slot ?? wire.slot });
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
