// Whether a provider would take a conversation, and how it would: also for people who use other frameworks.

import type { Msg } from "./types.js";

/** Whose rules are meant. */
export type Dialect = "openai" | "anthropic" | "gemini";

/** A rule that a transcript breaks, and where. */
export interface Violation {
  /** The rule that is broken, as a word. */
  readonly rule: string;
  readonly messageId: string | null;
  readonly message: string;
}

/** What the provider would refuse; nothing if it would take the messages as they are. */
export declare function checkTranscript(messages: readonly Msg[], dialect: Dialect): readonly Violation[];

/** The messages as the provider would take them; those that need no change are as they were. */
export declare function repairTranscript(messages: readonly Msg[], dialect: Dialect): readonly Msg[];
