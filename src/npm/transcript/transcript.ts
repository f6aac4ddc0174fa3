// The types of lockgate/transcript: checks whether a provider accepts a conversation, and repairs it. Useful with other
// frameworks too. The file has only declarations, because each host has its own implementation file.

import type { Msg } from "../types.js";

/** The provider API whose rules apply. */
export type Dialect = "openai" | "anthropic" | "gemini";

/** A rule that a transcript breaks, and the message that breaks it. */
export interface Violation {
  /** The name of the rule. */
  readonly rule: string;
  /** The id of the message. Null if the rule is about the whole conversation. */
  readonly messageId: string | null;
  /** What is wrong, for people. */
  readonly message: string;
}

/** The reasons why the provider would refuse the messages; an empty list if it would accept them. */
export declare function checkTranscript(messages: readonly Msg[], dialect: Dialect): readonly Violation[];

/** The messages, changed so that the provider accepts them. Messages that need no change stay the same. */
export declare function repairTranscript(messages: readonly Msg[], dialect: Dialect): readonly Msg[];
