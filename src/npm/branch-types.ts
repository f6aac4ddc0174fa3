// Asking again, and the branches that come of it.

import type { Call, CallOptions, InferSchema, Input, Schema, SessionInfo, Slot } from "./types.js";

/** What an agent does with the branches of a session. Nothing that was said is ever deleted by it. */
export interface Branching {
  /**
   * Answers the last question again, from the state before it was asked; `input` is asked in its place. The old answer
   * stays as a branch; one that fails or is aborted leaves it current. Files, memory and what tools did are not undone.
   * NO_ANCHOR if nothing was asked yet, PENDING_TOOLS while tool calls wait for an answer.
   */
  resend<S extends Schema = never>(slot: Slot, options?: CallOptions<S> & { readonly input?: Input }): Call<InferSchema<S>>;
  /** Every answer that was left, and the current one, each behind the one that it parts from; [] for a session that is not there. */
  branches(slot: Slot): Promise<Branch[]>;
  /** Goes on from the end of another branch, with the state that it was left with. INPUT_INVALID for one that is not there. */
  switchBranch(slot: Slot, branch: string): Promise<void>;
  /** Makes another session of this one, up to and with the message `upTo` of any branch, or whole. Refuses to replace a session that has messages. */
  fork(slot: Slot, to: Slot, options?: { readonly upTo?: string }): Promise<SessionInfo>;
}

/** A way that a conversation has taken. */
export interface Branch {
  /** Names it until it goes on. */
  readonly id: string;
  /** The branch that it parts from; null is the oldest. */
  readonly parent: string | null;
  /** The question that it answers: where it parts from others, or the last one. */
  readonly messageId: string;
  readonly createdAt: string;
  /** The last thing said in it, as a line. */
  readonly text: string;
  readonly current: boolean;
}

/** Which parts a resend rolls back and a save keeps; all by default. */
export interface StatePersistence {
  readonly conversation?: boolean;
  readonly tasks?: boolean;
  readonly plan?: boolean;
  readonly toolGroups?: boolean;
  readonly skills?: boolean;
  readonly permissions?: boolean;
}
