// Compaction, eviction and memory: how a conversation is kept within a model's window.

import type { Model } from "./model.js";

/** When and how a summary replaces older messages. The log keeps every message, and `history` returns them. */
export interface CompactionConfig {
  /** Compact from this number of messages on. Default 50; 0 turns this trigger off. */
  readonly triggerMessages?: number;
  /** Compact from this number of tokens on. Default: the model's window minus `reserve`, or 80,000 if the window is unknown; 0 turns this trigger off. */
  readonly triggerTokens?: number;
  /** Tokens of the window that are kept free for the answer, at most half of it. Default 20,000. */
  readonly reserve?: number;
  /** The number of newest messages that are not summarised. Default 20; fewer if they do not fit. */
  readonly keepMessages?: number;
  /** The number of tokens of newest messages that are not summarised. Default 0: `keepMessages` decides. */
  readonly keepTokens?: number;
  /** The prompt for the summary. It must contain `{messages}`. */
  readonly prompt?: string;
  /** The model that writes summaries. Default: the agent's model. */
  readonly model?: Model;
  /** Looks for facts in messages that a summary replaces: `compact()` before it makes the summary, a call after its reply. Default true. Needs `memory`. */
  readonly flushBeforeCompact?: boolean;
  /** The summary tells the model how to read the replaced messages. Default true. Needs `sessionTools`. The log keeps every message in any case. */
  readonly offloadBeforeCompact?: boolean;
  /** Whether long arguments of old tool calls are shortened when a trigger is reached. Default false; true shortens arguments over 2,000 characters. */
  readonly truncateArgs?: boolean | { readonly maxArgLength?: number; readonly truncationText?: string };
}

/** Which tool results are too large to be shown whole. With `workspace` or `planMode` the whole result is a read-only file, `tool-results/<session>/<message>.txt`, that all sessions of the user can read; it is deleted with its session. */
export interface ToolResultEvictionConfig {
  /** The longest result that is shown whole. Default 80,000 characters, or a quarter of the model's window if that is less. */
  readonly maxChars?: number;
  /** The number of characters that are shown of each end of a longer result. Default 2,000. */
  readonly previewChars?: number;
  /** Tools whose results are always shown whole. Default: the built-in tools that read files, memory and sessions. */
  readonly exclude?: readonly string[];
}

/** How facts about a user are remembered. They are in the user's files `MEMORY.md` and `memory/YYYY-MM-DD.md`, which `agent.files` can read. */
export interface MemoryConfig {
  /** The model that looks for facts after a reply and sometimes merges the notes. A small model is enough. Default: the agent's model. */
  readonly model?: Model;
  /** The most tokens of notes in the instructions. Default 4,000. When new notes fill half of it, they are merged into MEMORY.md. */
  readonly maxInjectedTokens?: number;
  /** When the model looks for facts in a session. "always": after each reply that follows something substantial; "throttled": at most every ten minutes, and for a compaction (`flushBeforeCompact`); "never": only the model's own tools note facts. Default "throttled". */
  readonly flush?: "always" | "throttled" | "never";
}

/** The effect of a compaction. */
export interface CompactionReport {
  /** The number of messages in the context before. */
  readonly messagesBefore: number;
  /** The number of messages in the context after, with the summary as one message. */
  readonly messagesAfter: number;
  /** The tokens of the context before. An estimate. */
  readonly tokensBefore: number;
  /** The tokens of the context after. An estimate. */
  readonly tokensAfter: number;
  /** The text of the summary. "" if messages are left out without one. */
  readonly summary: string;
}

/** What the next model request would contain, part by part. Tokens are estimates. */
export interface ContextReport {
  /** The model's context window in tokens. Null if it is not known. */
  readonly window: number | null;
  /** The tokens of all parts together. */
  readonly tokens: number;
  /** The parts, in the order of the request. */
  readonly parts: readonly {
    /** What the part is: the system prompt, the definitions of the tools, the summary of older messages, a message, or the reminder at the end. */
    readonly kind: "system" | "tools" | "summary" | "message" | "reminder";
    /** The id of the message. Only for "summary" and "message". */
    readonly messageId?: string;
    /** The messages that a summary replaces. `history` returns them. */
    readonly replaces?: { readonly first: string; readonly last: string; readonly messages: number };
    /** The file with the whole result, if only a part is shown. Absent without a workspace. */
    readonly evictedTo?: string;
    /** The tokens of this part. */
    readonly tokens: number;
    /** The part as text. For the tools it is JSON. */
    readonly text: string;
  }[];
}
