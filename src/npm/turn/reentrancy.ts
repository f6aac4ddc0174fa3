// Detects code that runs inside a tool or middleware. A call on the session of that tool would wait for itself forever.

import { LockgateError } from "../errors.js";
import type { Slot } from "../types.js";

/** An agent, and the session whose call runs the tool or middleware. */
export interface ToolSession {
  readonly agent: object;
  readonly sessionId: string;
  readonly userId: string | null;
}

/** The part of AsyncLocalStorage that we use. */
interface AsyncStorage {
  run<T>(session: ToolSession, work: () => T): T;
  getStore(): ToolSession | undefined;
}

const bySignal = new WeakMap<AbortSignal, ToolSession>();
let now: ToolSession | undefined;
let asyncStorage: AsyncStorage | null | undefined;

/** Calls that are made with this signal come from inside the tool. */
export function markSignal(signal: AbortSignal, session: ToolSession): void {
  bySignal.set(signal, session);
}

/** Runs a tool. Calls that it makes are recognised while it runs synchronously, and later too if the host has AsyncLocalStorage. */
export function runInside<T>(session: ToolSession, work: () => T): T {
  const before = now;
  now = session;
  try {
    const storage = findAsyncStorage();
    return storage === null ? work() : storage.run(session, work);
  } finally {
    now = before;
  }
}

/** Whether the running code belongs to a tool of this slot. Then a call on the slot would wait for itself. */
export function isInside(agent: object, slot: { readonly sessionId?: string | undefined; readonly userId: string | null }, signal?: AbortSignal): boolean {
  const known = [now, signal === undefined ? undefined : bySignal.get(signal), findAsyncStorage()?.getStore()];
  return known.some((session) => session?.agent === agent && session.sessionId === slot.sessionId && session.userId === slot.userId);
}

/** Whether the running code belongs to a tool of any session of this user. */
export function isInsideUser(agent: object, userId: string | null): boolean {
  return [now, findAsyncStorage()?.getStore()].some((session) => session?.agent === agent && session.userId === userId);
}

/** AsyncLocalStorage, looked up when it is first needed. It is not imported, because pages and workers do not have it. */
function findAsyncStorage(): AsyncStorage | null {
  if (asyncStorage !== undefined) return asyncStorage;
  const host = (globalThis as { process?: { getBuiltinModule?(name: string): unknown } }).process;
  const hooks = host?.getBuiltinModule?.("node:async_hooks") as { AsyncLocalStorage?: new () => AsyncStorage } | undefined;
  asyncStorage = hooks?.AsyncLocalStorage === undefined ? null : new hooks.AsyncLocalStorage();
  return asyncStorage;
}

/** The agent and slot of a call, in the form that is compared. */
export function toolSession(agent: object, slot: Slot): ToolSession {
  return { agent, sessionId: slot.sessionId, userId: slot.userId ?? null };
}

export function reentrant(what: string): LockgateError {
  return new LockgateError("REENTRANT", `${what} on the session of the tool that makes it would wait for itself`, {
    hint: "use another session, or return from the tool and let the model continue",
  });
}
