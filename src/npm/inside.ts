// Knows when code runs inside a tool: a call on the tool's own session would wait for itself for ever.

import { LockgateError } from "./errors.js";
import type { Slot } from "./types.js";

/** The session whose call runs a tool, as one agent knows it. */
export interface Inside {
  readonly agent: object;
  readonly sessionId: string;
  readonly userId: string | null;
}

/** Follows asynchronous code, where the host can do that. */
interface Follower {
  run<T>(inside: Inside, work: () => T): T;
  getStore(): Inside | undefined;
}

const bySignal = new WeakMap<AbortSignal, Inside>();
let now: Inside | undefined;
let follower: Follower | null | undefined;

/** Whoever calls with this signal does so from inside. */
export function comesFrom(signal: AbortSignal, inside: Inside): void {
  bySignal.set(signal, inside);
}

/** Runs a tool: what it begins synchronously, through its context or, where the host can follow it, later, is known to be its own. */
export function within<T>(inside: Inside, work: () => T): T {
  const before = now;
  now = inside;
  try {
    const follows = following();
    return follows === null ? work() : follows.run(inside, work);
  } finally {
    now = before;
  }
}

/** Whether a call on this slot would wait for a tool that waits for it. */
export function isInside(agent: object, slot: { readonly sessionId?: string | undefined; readonly userId: string | null }, signal?: AbortSignal): boolean {
  const known = [now, signal === undefined ? undefined : bySignal.get(signal), following()?.getStore()];
  return known.some((inside) => inside?.agent === agent && inside.sessionId === slot.sessionId && inside.userId === slot.userId);
}

/** Whether code runs inside a tool of one of the user's sessions. */
export function isInsideUser(agent: object, userId: string | null): boolean {
  return [now, following()?.getStore()].some((inside) => inside?.agent === agent && inside.userId === userId);
}

/** AsyncLocalStorage, found when first needed and never imported: pages and workers have none. */
function following(): Follower | null {
  if (follower !== undefined) return follower;
  const host = (globalThis as { process?: { getBuiltinModule?(name: string): unknown } }).process;
  const hooks = host?.getBuiltinModule?.("node:async_hooks") as { AsyncLocalStorage?: new () => Follower } | undefined;
  follower = hooks?.AsyncLocalStorage === undefined ? null : new hooks.AsyncLocalStorage();
  return follower;
}

/** The slot of a call, as it is compared. */
export function insideOf(agent: object, slot: Slot): Inside {
  return { agent, sessionId: slot.sessionId, userId: slot.userId ?? null };
}

export function reentrant(what: string): LockgateError {
  return new LockgateError("REENTRANT", `${what} on the session of the tool that makes it would wait for itself`, {
    hint: "use another session, or answer from the tool and let the model go on",
  });
}
