// What calls are made for, and with what.

import type { Answer, CallOptions, Input, Slot } from "./types.js";

/** What a call is made for: to say something, to answer, to go on, or to have the last question answered again. */
export type Wish = { readonly input: Input } | { readonly answers: readonly Answer[] } | { readonly resumes: true } | { readonly resends: true; readonly input?: Input };

/** Options beside a slot; those that are not an object are refused as a slot would be. */
export function withOptions(slot: Slot, options: CallOptions | undefined): Slot & CallOptions {
  return typeof slot === "object" && slot !== null ? { ...options, ...slot } : slot;
}

export function ownUser(context: Slot | undefined): { userId?: string | null } {
  const userId = context?.userId;
  return userId === undefined ? {} : { userId };
}
