// The options and results of `search`, and the check of the options.

import { LockgateError } from "../errors.js";
import { jsonText } from "../values/json.js";
import { checkSlot } from "../values/arguments.js";
import type { SearchOptions } from "../types/session.js";

/** Checks the arguments of `search`: returns the request for Rust, or throws INPUT_INVALID or ID_INVALID. */
export function checkSearch(query: string, options: SearchOptions): string {
  if (typeof query !== "string") throw new LockgateError("INPUT_INVALID", "the query is not text", { hint: 'search("words", { userId })' });
  if (typeof options !== "object" || options === null || !("userId" in options)) {
    throw new LockgateError("ID_INVALID", "userId is missing", { hint: "pass the user whose sessions are searched; null for the anonymous user" });
  }
  const { userId, sessionId, limit = 10 } = options;
  if (!(Number.isInteger(limit) && limit > 0)) {
    throw new LockgateError("INPUT_INVALID", "limit is not a whole number of at least 1", { hint: "leave limit out for 10 results" });
  }
  const slot = checkSlot(sessionId === undefined ? { userId } : { userId, sessionId });
  return jsonText({ ...slot, limit, query });
}
