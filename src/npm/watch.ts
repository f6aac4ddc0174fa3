// Who listens to which sessions.

import { LockgateError } from "./errors.js";
import type { AgentEvent, SessionEvent, Slot } from "./types.js";

/** Which sessions somebody listens to. */
export type Of = Slot | { readonly userId: string | null } | "everyone";

export type Listener = (event: AgentEvent | SessionEvent) => void;

/** A slot in full. */
export interface FullSlot {
  readonly sessionId: string;
  readonly userId: string | null;
}

/** The listeners of one agent. */
export class Watchers {
  readonly #listeners = new Map<Listener, Of>();

  /** Adds a listener; the answer takes it away again. */
  add(of: Of, listener: Listener): () => void {
    // A function of its own, so that one listener may be there twice.
    const own: Listener = (event) => listener(event);
    this.#listeners.set(own, of);
    return () => void this.#listeners.delete(own);
  }

  /** What is listened to. */
  all(): readonly Of[] {
    return [...this.#listeners.values()];
  }

  /** Whether anybody listens to this session. */
  concern(slot: FullSlot): boolean {
    return this.all().some((of) => concerns(of, slot));
  }

  /** Tells those who listen to this session, or to the user if it is about all of theirs. What they throw is theirs to see, and nobody else's. */
  tell(event: AgentEvent | SessionEvent, slot: { readonly userId: string | null; readonly sessionId?: string }): void {
    for (const [listener, of] of this.#listeners) {
      if (!concerns(of, slot)) continue;
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /** Tells everybody. */
  tellAll(event: SessionEvent): void {
    for (const listener of this.#listeners.keys()) listener(event);
  }
}

/** Whether what happens in a session concerns such a listener; without a session it is about all of a user's. */
export function concerns(of: Of, slot: { readonly userId: string | null; readonly sessionId?: string }): boolean {
  if (of === "everyone") return true;
  if ((of.userId ?? null) !== slot.userId) return false;
  return !("sessionId" in of) || slot.sessionId === undefined || of.sessionId === slot.sessionId;
}

/** What a caller wants to listen to, or INPUT_INVALID. */
export function checkOf(of: unknown, listener: unknown): Of {
  if (!isOf(of) || typeof listener !== "function") {
    const hint = 'subscribe({ userId, sessionId }, listener), subscribe({ userId }, listener) or subscribe("everyone", listener)';
    throw new LockgateError("INPUT_INVALID", "there is nothing to subscribe to, or no listener", { hint });
  }
  return of;
}

/** Whether that says which sessions are meant; other tabs may send anything. */
export function isOf(of: unknown): of is Of {
  return of === "everyone" || (typeof of === "object" && of !== null && ("sessionId" in of || "userId" in of));
}

/** Whether that is a slot in full. */
export function isSlot(slot: unknown): slot is FullSlot {
  if (typeof slot !== "object" || slot === null) return false;
  const { sessionId, userId } = slot as Partial<FullSlot>;
  return typeof sessionId === "string" && (userId === null || typeof userId === "string");
}
