// What a call is asked to do.

import type { Answer, CallOptions, Input, Slot } from "../types.js";

/** What a call is asked to do: answer an input, take answers to asks, resume a turn, or answer a question again. */
export type CallPurpose = { readonly input: Input } | { readonly answers: readonly Answer[] } | { readonly resumes: true } | { readonly resends: true; readonly holdsPermissions?: true; readonly input?: Input; readonly from?: string };

/** A slot and options in one object. A slot that is not an object is returned unchanged, so that the check of the slot refuses it. */
export function withOptions(slot: Slot, options: CallOptions | undefined): Slot & CallOptions {
  return typeof slot === "object" && slot !== null ? { ...options, ...slot } : slot;
}

export function ownUser(context: Slot | undefined): { userId?: string | null } {
  const userId = context?.userId;
  return userId === undefined ? {} : { userId };
}
