// Responses of the worker: JSON, and errors with code, hint and status.

import { LockgateError } from "../errors.js";
import type { ErrorCode } from "../types.js";
import { type WireError, toWire } from "../protocol/wire.js";

export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };

/** A value as JSON; undefined becomes null. */
export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value ?? null), { status, headers: JSON_HEADERS });
}

/** The header with the id of a call, encoded because an id may contain any text. */
export function named({ id }: { readonly id: string }): Record<string, string> {
  return { "x-lockgate-call": encodeURIComponent(id) };
}

/** An error as JSON. `more` replaces or adds members, such as the status. */
export function refused(error: unknown, more: Partial<WireError> = {}): Response {
  if (!LockgateError.isInstance(error)) note(error);
  const wire = { ...toWire(error), ...more };
  return json(wire, wire.status);
}

/** Writes the name and the stack of an error that is not ours to the log. The message is left out, because it may contain data of users. */
function note(error: unknown): void {
  const { name, stack = "" } = (error ?? {}) as Partial<Error>;
  const places = stack.split("\n").filter((line) => /^\s+at /.test(line));
  console.error(`lockgate: ${name ?? typeof error}\n${places.join("\n")}`);
}

/** The response to a request that does not reach the agent. */
export function notTaken(status: number, message: string, hint: string, code: ErrorCode = "INPUT_INVALID"): Response {
  return refused(new LockgateError(code, message, { hint }), { status });
}

/** The error for a failed request to a Durable Object. */
export function fromObject(error: unknown): LockgateError {
  const { overloaded, retryable, durableObjectReset } = (error ?? {}) as { overloaded?: unknown; retryable?: unknown; durableObjectReset?: unknown };
  if (durableObjectReset === true) {
    return new LockgateError("STORE_UNAVAILABLE", "the Durable Object was reset during the request", { hint: "acknowledged turns are stored: try again with the same callId" });
  }
  if (overloaded === true || retryable === true) {
    return new LockgateError("BUSY", "the Durable Object is overloaded or moving", { hint: "wait a little and try again" });
  }
  return new LockgateError("INTERNAL", "the Durable Object failed", { hint: "see its log" });
}
