// What the worker answers with: JSON, and errors with their code, hint and status.

import { LockgateError } from "../errors.js";
import type { ErrorCode } from "../types.js";
import { type WireError, toWire } from "../wire.js";

const HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };

/** A value as JSON; nothing is null. */
export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value ?? null), { status, headers: HEADERS });
}

/** Says which call a stream is of; an id may hold what a header cannot. */
export function named({ id }: { readonly id: string }): Record<string, string> {
  return { "x-lockgate-call": encodeURIComponent(id) };
}

/** An error as JSON. `more` says what the error itself does not know, such as another status. */
export function refused(error: unknown, more: Partial<WireError> = {}): Response {
  if (!LockgateError.isInstance(error)) note(error);
  const wire = { ...toWire(error), ...more };
  return json(wire, wire.status);
}

/** Tells the worker's log where something failed that is not ours; its words stay out of it, they may be a user's. */
function note(error: unknown): void {
  const { name, stack = "" } = (error ?? {}) as Partial<Error>;
  const places = stack.split("\n").filter((line) => /^\s+at /.test(line));
  console.error(`lockgate: ${name ?? typeof error}\n${places.join("\n")}`);
}

/** What is wrong with a request as such. */
export function notTaken(status: number, message: string, hint: string, code: ErrorCode = "INPUT_INVALID"): Response {
  return refused(new LockgateError(code, message, { hint }), { status });
}

/** What a Durable Object, or the way to it, failed with. */
export function fromObject(error: unknown): LockgateError {
  const { overloaded, retryable, durableObjectReset } = (error ?? {}) as { overloaded?: unknown; retryable?: unknown; durableObjectReset?: unknown };
  if (durableObjectReset === true) {
    return new LockgateError("STORE_UNAVAILABLE", "the object was reset while it answered", { hint: "what was acknowledged is stored: try again with the same callId" });
  }
  if (overloaded === true || retryable === true) {
    return new LockgateError("BUSY", "the object is overloaded or moving", { hint: "wait a little and try again" });
  }
  return new LockgateError("INTERNAL", "the object failed", { hint: "its log may say why" });
}
