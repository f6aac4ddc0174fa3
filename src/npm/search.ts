// What is searched for, checked, and what is found.

import { LockgateError } from "./errors.js";
import { jsonText } from "./json.js";
import { checkSlot } from "./options.js";
import type { Msg, Slot } from "./types.js";

/** A message that was found; `score` is to be compared within one answer. */
export interface SearchHit {
  readonly slot: Slot;
  readonly messageId: string;
  readonly role: Msg["role"];
  readonly at: string;
  /** The part of it in which most of what was asked for stands together. */
  readonly excerpt: string;
  readonly score: number;
}

/** Where to search. */
export interface SearchOptions {
  readonly userId: string | null;
  readonly sessionId?: string;
  readonly limit?: number;
}

/** A search as Rust takes it, or INPUT_INVALID, or ID_INVALID. */
export function checkSearch(query: string, options: SearchOptions): string {
  if (typeof query !== "string") throw new LockgateError("INPUT_INVALID", "the query is not text", { hint: 'search("words", { userId })' });
  if (typeof options !== "object" || options === null || !("userId" in options)) {
    throw new LockgateError("ID_INVALID", "userId is missing", { hint: "name whose sessions are searched; null for the anonymous user" });
  }
  const { userId, sessionId, limit = 10 } = options;
  if (!(Number.isInteger(limit) && limit > 0)) {
    throw new LockgateError("INPUT_INVALID", "limit is not a whole number from 1 on", { hint: "leave it out for 10" });
  }
  const slot = checkSlot(sessionId === undefined ? { userId } : { userId, sessionId });
  return jsonText({ ...slot, limit, query });
}
