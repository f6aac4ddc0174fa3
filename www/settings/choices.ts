// The choices of the settings, and their defaults.

export type ProviderName = "demo" | "openai" | "anthropic" | "gemini";
export type StoreName = "indexeddb" | "localstorage" | "memory";

export interface Choices {
  readonly provider: ProviderName;
  /** The id of the preset that the address came from. */
  readonly preset: string;
  readonly baseUrl: string;
  readonly model: string;
  /** In tokens. Null: the package uses the window that it knows, if any. */
  readonly contextWindow: number | null;
  /** Whether a key was used but not kept, so that the user must type it again after a reload. */
  readonly needsKey: boolean;
  readonly store: StoreName;
  readonly compaction: CompactionChoices;
}

export interface CompactionChoices {
  readonly when: "trigger" | "overflow" | "never";
  readonly triggerMessages: number;
  /** Null: the model's window minus the space for an answer. */
  readonly triggerTokens: number | null;
  readonly keepMessages: number;
}

/** An API key, and whether this browser stores it. */
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

/** Whether this browser has stored choices. A first visit does not load the code that reads them. */
export function hasChosen(): boolean {
  try {
    return localStorage.getItem(choicesAt) !== null;
  } catch {
    // Storage is forbidden, so there are no choices.
    return false;
  }
}
