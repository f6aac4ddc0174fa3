// The listeners that `subscribe` adds, and the sessions that each of them listens to.

import { LockgateError } from "../errors.js";
import type { AgentEvent, SessionEvent, Slot } from "../types.js";

/** The sessions that a listener listens to: one session, all sessions of a user, or all sessions. */
export type SessionFilter = Slot | { readonly userId: string | null } | "everyone";

export type Listener = (event: AgentEvent | SessionEvent) => void;

/** A slot with both of its parts. */
export interface FullSlot {
  readonly sessionId: string;
  readonly userId: string | null;
}

/** The listeners of one agent. */
export class Listeners {
  readonly #listeners = new Map<Listener, SessionFilter>();

  /** Adds a listener. The returned function removes it. */
  add(of: SessionFilter, listener: Listener): () => void {
    // A new function for each call, because the same listener may be added twice.
    const own: Listener = (event) => listener(event);
    this.#listeners.set(own, of);
    return () => void this.#listeners.delete(own);
  }

  /** The filters of all listeners. */
  all(): readonly SessionFilter[] {
    return [...this.#listeners.values()];
  }

  /** Whether a listener listens to this session. */
  hasListener(slot: FullSlot): boolean {
    return this.all().some((of) => covers(of, slot));
  }

  /** Calls the listeners of a session; without a session, those of the user. An error of a listener is reported as uncaught and does not affect the others. */
  notify(event: AgentEvent | SessionEvent, slot: { readonly userId: string | null; readonly sessionId?: string }): void {
    for (const [listener, of] of this.#listeners) {
      if (!covers(of, slot)) continue;
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

}

/** Whether a filter includes a session; without a session, whether it includes any session of the user. */
export function covers(of: SessionFilter, slot: { readonly userId: string | null; readonly sessionId?: string }): boolean {
  if (of === "everyone") return true;
  if ((of.userId ?? null) !== slot.userId) return false;
  return !("sessionId" in of) || slot.sessionId === undefined || of.sessionId === slot.sessionId;
}

/** Checks the arguments of `subscribe`: returns the filter or throws INPUT_INVALID. */
export function checkSessionFilter(of: unknown, listener: unknown): SessionFilter {
  if (!isSessionFilter(of) || typeof listener !== "function") {
    const hint = 'subscribe({ userId, sessionId }, listener), subscribe({ userId }, listener) or subscribe("everyone", listener)';
    throw new LockgateError("INPUT_INVALID", "subscribe needs sessions to listen to, and a function", { hint });
  }
  return of;
}

/** Whether a value is a filter. Needed because other tabs may send anything. */
export function isSessionFilter(of: unknown): of is SessionFilter {
  return of === "everyone" || (typeof of === "object" && of !== null && ("sessionId" in of || "userId" in of));
}

/** Whether a value is a slot with both of its parts. */
export function isSlot(slot: unknown): slot is FullSlot {
  if (typeof slot !== "object" || slot === null) return false;
  const { sessionId, userId } = slot as Partial<FullSlot>;
  return typeof sessionId === "string" && (userId === null || typeof userId === "string");
}
