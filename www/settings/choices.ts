// What a person can choose, and what counts until they have.

export type ProviderName = "demo" | "openai" | "anthropic" | "gemini";
export type StoreName = "indexeddb" | "localstorage" | "memory";

export interface Choices {
  readonly provider: ProviderName;
  /** Which of the presets the address came from. */
  readonly preset: string;
  readonly baseUrl: string;
  readonly model: string;
  /** Tokens; null where the package knows it or nobody does. */
  readonly contextWindow: number | null;
  /** A key was in use and not kept: the next page must be told it again. */
  readonly needsKey: boolean;
  readonly store: StoreName;
  readonly compaction: CompactionChoices;
}

export interface CompactionChoices {
  readonly when: "trigger" | "overflow" | "never";
  readonly triggerMessages: number;
  /** Null: the model's window less what an answer needs. */
  readonly triggerTokens: number | null;
  readonly keepMessages: number;
}

/** A key, and whether it may outlive the page. */
export interface Key {
  readonly value: string;
  readonly isKept: boolean;
}

export const defaults: Choices = {
  provider: "demo",
  preset: "demo",
  baseUrl: "",
  model: "",
  contextWindow: null,
  needsKey: false,
  store: "indexeddb",
  compaction: { when: "trigger", triggerMessages: 50, triggerTokens: null, keepMessages: 20 },
};

export const noKey: Key = { value: "", isKept: false };

export const choicesAt = "lockgate.settings";

/** Whether anything was ever chosen in this browser; a first visit does without what reads it. */
export function hasChosen(): boolean {
  try {
    return localStorage.getItem(choicesAt) !== null;
  } catch {
    // Storage that is forbidden holds no choice.
    return false;
  }
}
