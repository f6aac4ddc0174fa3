// Turns errors of an SQL client into LockgateErrors.

import { LockgateError } from "../errors.js";
import type { ErrorCode } from "../types.js";

const QUOTA = [1021, 1114, 1041, 1037];
const TOO_LARGE = [1153, 1118, 1301];
const TIMEOUTS = [1969, 3024, 1317];
const LOST = ["PROTOCOL_CONNECTION_LOST", "ECONNRESET", "ECONNREFUSED", "EPIPE", "ENOENT", "ER_SERVER_SHUTDOWN", "ER_NEW_ABORTING_CONNECTION"];

/** The error number of the server, or 0. */
export function numberOf(error: unknown): number {
  return Number((error as { errno?: unknown } | null)?.errno ?? 0);
}

/** Whether the connection was lost. */
export function isLost(error: unknown): boolean {
  if (LockgateError.isInstance(error)) return false;
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return LOST.includes(String(code)) || /closed state|connection.*(closed|lost)|server has gone away/i.test(String(message));
}

/** Makes a LockgateError from an error of the client or the server. */
export function fromSql(error: unknown): LockgateError {
  if (LockgateError.isInstance(error)) return error;
  const number = numberOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const failed = (code: ErrorCode, hint: string): LockgateError => new LockgateError(code, `the database failed: ${message}`, { hint, cause: error });
  if (QUOTA.includes(number)) return failed("STORE_QUOTA", "the server has no space left: free some space");
  if (TOO_LARGE.includes(number)) return failed("STATE_TOO_LARGE", "raise max_allowed_packet");
  if (TIMEOUTS.includes(number) || /ETIMEDOUT|PROTOCOL_SEQUENCE_TIMEOUT/.test(String((error as { code?: unknown } | null)?.code))) {
    return failed("STORE_TIMEOUT", "check whether the server is overloaded");
  }
  if (number === 1213 || number === 1205) return failed("STORE_UNAVAILABLE", "too many writers at once: try again");
  return failed("STORE_UNAVAILABLE", "check whether the server runs, can be reached, and lets this user create and change the table");
}
