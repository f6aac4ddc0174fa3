// The one error class, and the table of its codes.

import type { ErrorCode, Msg, SerializedError, Slot } from "./types.js";

/** HTTP status of each code, and whether the same call may succeed later. Rust has the same table; a test compares. */
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

/** Two copies of this package in one realm still know each other's errors by it. */
const MARK = Symbol.for("lockgate.error");

/** What an error knows besides its code and its sentence. */
export interface Details {
  readonly hint?: string | undefined;
  readonly slot?: Slot | undefined;
  readonly callId?: string | undefined;
  readonly partial?: Msg | undefined;
  readonly cause?: unknown;
}

/** Branch on `code`, show `message` and `hint`. ABORTED has the name "AbortError" and `cause` is the signal's reason. */
export class LockgateError extends Error {
  static isInstance(value: unknown): value is LockgateError {
    return typeof value === "object" && value !== null && MARK in value;
  }

  readonly code: ErrorCode;
  /** HTTP. */
  readonly status: number;
  readonly retryable: boolean;
  readonly hint?: string;
  readonly slot?: Slot;
  readonly callId?: string;
  /** What was answered before it failed, if anything was; it is in the session's log too. */
  readonly partial?: Msg;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = code === "ABORTED" ? "AbortError" : "LockgateError";
    this.code = code;
    this.status = CODES[code].status;
    this.retryable = CODES[code].retryable;
    if (details.hint !== undefined) this.hint = details.hint;
    if (details.slot !== undefined) this.slot = details.slot;
    if (details.callId !== undefined) this.callId = details.callId;
    if (details.partial !== undefined) this.partial = details.partial;
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** What Rust throws: a plain object, never an `Error`. */
export interface CoreError extends SerializedError {
  readonly cause?: unknown;
}

export function isCoreError(value: unknown): value is CoreError {
  return typeof value === "object" && value !== null && !(value instanceof Error) && "code" in value && "message" in value;
}

/** An error of Rust's as users see it. */
export function fromCore(error: CoreError, details: Details = {}): LockgateError {
  const cause = isCoreError(error.cause) ? fromCore(error.cause) : error.cause;
  return new LockgateError(error.code, error.message, {
    ...details,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(cause === undefined ? {} : { cause }),
  });
}
