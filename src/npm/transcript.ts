// Whether a provider would take a conversation, and how it would: also for people who use other frameworks.

import { LockgateError } from "./errors.js";
import { jsonText } from "./json.js";
import type { Msg } from "./types.js";
import type { Engine } from "./wasm.js";

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

/** Makes both for one way of loading the wasm. */
export function transcriptOf(engine: () => Engine): { checkTranscript: typeof checkTranscript; repairTranscript: typeof repairTranscript } {
  const ask = <T>(what: "checkTranscript" | "repairTranscript", messages: readonly Msg[], dialect: Dialect): T => {
    if (!Array.isArray(messages)) throw new LockgateError("INPUT_INVALID", "the transcript is not a list", { hint: "give a list of Msg" });
    const text = jsonText(messages);
    const instance = engine().instance();
    return JSON.parse(instance.enter(() => instance.core[what](text, dialect))) as T;
  };
  return {
    checkTranscript: (messages, dialect) => ask("checkTranscript", messages, dialect),
    repairTranscript: (messages, dialect) => ask("repairTranscript", messages, dialect),
  };
}
