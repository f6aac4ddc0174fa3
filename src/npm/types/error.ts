// The codes of errors, and an error as plain data.

import type { Msg } from "./message.js";

/** The code of an error: the member to branch on. */
export type ErrorCode =
  /** An option is invalid, or a method needs an option that is not set. */
  | "OPTIONS"
  /** A userId or sessionId is invalid or missing. */
  | "ID_INVALID"
  /** The input or another argument is invalid. */
  | "INPUT_INVALID"
  /** The session is busy: its queue is full, or `overlap` is "reject". Retryable. */
  | "BUSY"
  /** A tool or middleware called the session in which it runs. */
  | "REENTRANT"
  /** The `signal` of the call fired. */
  | "ABORTED"
  /** The call did not end within `timeouts.call`, or another process used the session longer than `timeouts.lock`. Retryable. */
  | "TIMEOUT"
  /** Another writer has changed the session, or has taken it over. */
  | "SUPERSEDED"
  /** The agent is shutting down or closed. Retryable. */
  | "SHUTTING_DOWN"
  /** There is no such session, or it was deleted. */
  | "NO_SUCH_SESSION"
  /** The session has no question that `resend` could ask again. */
  | "NO_ANCHOR"
  /** The session does not wait for this answer. */
  | "NOT_ASKING"
  /** Tool calls of the session still wait for an answer. */
  | "PENDING_TOOLS"
  /** The store, or the worker of a remote agent, cannot be reached. Retryable. */
  | "STORE_UNAVAILABLE"
  /** The store did not answer within `timeouts.store`. Retryable. */
  | "STORE_TIMEOUT"
  /** The store is full. */
  | "STORE_QUOTA"
  /** Another page holds the store. Retryable. */
  | "STORE_BLOCKED"
  /** A stored record cannot be read. Its bytes are kept; see `repairSession`. */
  | "STORE_CORRUPT"
  /** The worker of a remote agent does not know who is asking. */
  | "UNAUTHORIZED"
  /** The caller of a worker lacks the right to do this, or a page may not send this request. */
  | "FORBIDDEN"
  /** A record is larger than the store accepts, or a request to the edge is larger than `maxBodyBytes`. */
  | "STATE_TOO_LARGE"
  /** The session was written by a newer version of the package. */
  | "STATE_VERSION"
  /** The wasm could not be loaded. Retryable. */
  | "ENGINE_LOAD"
  /** The engine crashed and was restarted. Retryable. */
  | "ENGINE_CRASHED"
  /** The provider refuses the API key or the account: the key is wrong, access is denied, or it asks for payment. The message says which. */
  | "MODEL_AUTH"
  /** The provider limits the rate of requests. Retryable. */
  | "MODEL_RATE_LIMIT"
  /** The provider is overloaded, unavailable or has an internal error. Retryable. */
  | "MODEL_OVERLOADED"
  /** The request is larger than the model's context window. */
  | "MODEL_CONTEXT_OVERFLOW"
  /** The provider refuses the request. */
  | "MODEL_BAD_REQUEST"
  /** The answer of the model ended too early. Retryable. */
  | "MODEL_TRUNCATED"
  /** The model did not begin or continue its answer in time. Retryable. */
  | "MODEL_TIMEOUT"
  /** The provider cannot be reached. Retryable. */
  | "MODEL_NETWORK"
  /** A filter of the provider stopped the answer. */
  | "MODEL_REFUSED"
  /** The model failed in another way. */
  | "MODEL_FAILED"
  /** The answer does not match `outputSchema`. */
  | "OUTPUT_INVALID"
  /** No summary could be made. Retryable. */
  | "COMPACTION_FAILED"
  /** A middleware threw an error, returned something that it may not return, or did not settle within `timeouts.hook`. */
  | "MIDDLEWARE"
  /** A path of the workspace is invalid, or there is no such file. */
  | "PATH_INVALID"
  /** An error of lockgate itself. */
  | "INTERNAL";

/** An error as plain data. */
export interface SerializedError {
  /** The kind of error. */
  readonly code: ErrorCode;
  /** What happened, for people. */
  readonly message: string;
  /** What to do next. Absent if there is no hint. */
  readonly hint?: string;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** The part of the answer that came before the error. Absent if there is none. */
  readonly partial?: Msg;
}
