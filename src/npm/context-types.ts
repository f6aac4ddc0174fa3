// How a conversation is kept within a model's window, and what that shows.

import type { Model } from "./model-types.js";

/** When and how older messages give way to a summary. The log keeps every message; `history` shows it. */
export interface CompactionConfig {
  /** From so many messages on. Default 50; 0 is never by their number. */
  readonly triggerMessages?: number;
  /** From so many tokens on. Default: the model's window less `reserve`, or 80,000 if the window is unknown; 0 is never by tokens. */
  readonly triggerTokens?: number;
  /** What is left of the window for the answer. Default 20,000. */
  readonly reserve?: number;
  /** How many messages stay as they are. Default 20; fewer where they would not fit. */
  readonly keepMessages?: number;
  /** How many tokens of messages stay as they are. Default 0: by `keepMessages`. */
  readonly keepTokens?: number;
  /** What the summary is asked for with; must hold `{messages}`. */
  readonly prompt?: string;
  /** Who summarises. The agent's own model by default. */
  readonly model?: Model;
  /** Facts go into the memory before a summary replaces what they were said in. Default true; does something where the agent has a memory. */
  readonly flushBeforeCompact?: boolean;
  /** The summary tells the model how to get at what it stands for, where the agent has `sessionTools`. Default true; the log has every message, whatever this says. */
  readonly offloadBeforeCompact?: boolean;
  /** Whether long arguments of old tool calls are cut at the trigger. Default false; true cuts those over 2,000 characters. */
  readonly truncateArgs?: boolean | { readonly maxArgLength?: number; readonly truncationText?: string };
}

/** Which results of tools are too large to be shown whole. */
export interface ToolResultEvictionConfig {
  /** Default 80,000 characters, or a quarter of the model's window if that is less. */
  readonly maxChars?: number;
  /** How many characters are shown of each end. Default 2,000. */
  readonly previewChars?: number;
  /** Tools whose results always stay. Default: the built-in tools that read files, memory and sessions. */
  readonly exclude?: readonly string[];
}

/** How facts about a user are remembered: in their files `MEMORY.md` and `memory/YYYY-MM-DD.md`, which `agent.files` reads too. */
export interface MemoryConfig {
  /** Who looks for facts after a reply, and merges the notes now and then; a small model will do. The agent's own model by default. */
  readonly model?: Model;
  /** The most tokens of notes in the instructions. Default 4,000; when new notes fill half of it they are merged into MEMORY.md. */
  readonly maxInjectedTokens?: number;
}

/** What a summary did. */
export interface CompactionReport {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly summary: string;
}

/** What the next model request would hold, piece by piece. Tokens are estimates. */
export interface ContextReport {
  readonly window: number | null;
  readonly tokens: number;
  readonly parts: readonly {
    readonly kind: "system" | "tools" | "summary" | "message" | "reminder";
    readonly messageId?: string;
    /** The messages that a summary stands for; `history` has them. */
    readonly replaces?: { readonly first: string; readonly last: string; readonly messages: number };
    /** Where all of a result can be read that is shown in part. */
    readonly evictedTo?: string;
    readonly tokens: number;
    readonly text: string;
  }[];
}
