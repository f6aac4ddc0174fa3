// The error class of the package, and the table of error codes.

import type { ErrorCode, Msg, SerializedError, Slot } from "./types.js";

/** The HTTP status of each code, and whether the same call may succeed later. Rust has the same table; a test compares both. */
export const CODES = {
  OPTIONS: { status: 400, retryable: false },
  ID_INVALID: { status: 400, retryable: false },
  INPUT_INVALID: { status: 400, retryable: false },
  BUSY: { status: 429, retryable: true },
  REENTRANT: { status: 409, retryable: false },
  ABORTED: { status: 499, retryable: false },
  TIMEOUT: { status: 504, retryable: true },
  SUPERSEDED: { status: 409, retryable: false },
  SHUTTING_DOWN: { status: 503, retryable: true },
  NO_SUCH_SESSION: { status: 404, retryable: false },
  NO_ANCHOR: { status: 409, retryable: false },
  NOT_ASKING: { status: 409, retryable: false },
  PENDING_TOOLS: { status: 409, retryable: false },
  STORE_UNAVAILABLE: { status: 503, retryable: true },
  STORE_TIMEOUT: { status: 504, retryable: true },
  STORE_QUOTA: { status: 507, retryable: false },
  STORE_BLOCKED: { status: 503, retryable: true },
  STORE_CORRUPT: { status: 500, retryable: false },
  UNAUTHORIZED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  STATE_TOO_LARGE: { status: 413, retryable: false },
  STATE_VERSION: { status: 409, retryable: false },
  ENGINE_LOAD: { status: 500, retryable: true },
  ENGINE_CRASHED: { status: 500, retryable: true },
  MODEL_AUTH: { status: 401, retryable: false },
  MODEL_RATE_LIMIT: { status: 429, retryable: true },
  MODEL_OVERLOADED: { status: 503, retryable: true },
  MODEL_CONTEXT_OVERFLOW: { status: 413, retryable: false },
  MODEL_BAD_REQUEST: { status: 400, retryable: false },
  MODEL_TRUNCATED: { status: 502, retryable: true },
  MODEL_TIMEOUT: { status: 504, retryable: true },
  MODEL_NETWORK: { status: 502, retryable: true },
  MODEL_REFUSED: { status: 422, retryable: false },
  MODEL_FAILED: { status: 502, retryable: false },
  OUTPUT_INVALID: { status: 422, retryable: false },
  COMPACTION_FAILED: { status: 502, retryable: true },
  MIDDLEWARE: { status: 500, retryable: false },
  PATH_INVALID: { status: 400, retryable: false },
  INTERNAL: { status: 500, retryable: false },
} as const satisfies Readonly<Record<ErrorCode, { readonly status: number; readonly retryable: boolean }>>;

/** Marks our errors. The symbol is global, so two copies of the package in one realm recognise each other's errors. */
const MARK = Symbol.for("lockgate.error");

/** The optional members of an error. */
export interface Details {
  /** What to do next. */
  readonly hint?: string | undefined;
  /** The session. */
  readonly slot?: Slot | undefined;
  /** The call. */
  readonly callId?: string | undefined;
  /** The part of the answer that came before the error. */
  readonly partial?: Msg | undefined;
  /** The error or value that caused it. */
  readonly cause?: unknown;
  /** The HTTP status, and whether the same call may succeed later, of a code that this version does not know: a newer worker has sent it. Default 500, false. */
  readonly unknown?: {
    /** The HTTP status. */
    readonly status?: number | undefined;
    /** Whether the same call may succeed later. */
    readonly retryable?: boolean | undefined;
  };
}

/** Branch on `code`; show `message` and `hint`. ABORTED has the name "AbortError", and its `cause` is the signal's reason. */
export class LockgateError extends Error {
  /** Whether a value is an error of this package, also of another copy of it. */
  static isInstance(value: unknown): value is LockgateError {
    return typeof value === "object" && value !== null && MARK in value;
  }

  /** The kind of error: branch on it. */
  readonly code: ErrorCode;
  /** The HTTP status. */
  readonly status: number;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** What to do next. Absent if there is no hint. */
  readonly hint?: string;
  /** The session. Absent if the error is not about one. */
  readonly slot?: Slot;
  /** The id of the call. Absent if the error is not about one. */
  readonly callId?: string;
  /** The part of the answer that came before the error. It is in the log too, unless the save failed. */
  readonly partial?: Msg;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = code === "ABORTED" ? "AbortError" : "LockgateError";
    this.code = code;
    const known = isKnownCode(code) ? CODES[code] : details.unknown;
    this.status = known?.status ?? CODES.INTERNAL.status;
    this.retryable = known?.retryable ?? false;
    if (details.hint !== undefined) this.hint = details.hint;
    if (details.slot !== undefined) this.slot = details.slot;
    if (details.callId !== undefined) this.callId = details.callId;
    if (details.partial !== undefined) this.partial = details.partial;
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** Whether this version knows a code. */
export function isKnownCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(CODES, code);
}

/** An error as Rust throws it: a plain object, never an `Error`. */
export interface CoreError extends SerializedError {
  readonly cause?: unknown;
}

/** Whether a value is an error of Rust. */
export function isCoreError(value: unknown): value is CoreError {
  return typeof value === "object" && value !== null && !(value instanceof Error) && "code" in value && "message" in value;
}

/** Makes a LockgateError from an error of Rust. */
export function fromCore(error: CoreError, details: Details = {}): LockgateError {
  const cause = isCoreError(error.cause) ? fromCore(error.cause) : error.cause;
  return new LockgateError(error.code, error.message, {
    unknown: { retryable: error.retryable },
    ...details,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(cause === undefined ? {} : { cause }),
  });
}
