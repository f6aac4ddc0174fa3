// Stores the choices in this browser, and the key only if the user wants it.
import { choicesAt, defaults, noKey } from "./choices.ts";
import type { Choices, Key } from "./choices.ts";

export { inUseAt, inUseOf } from "./in-use.ts";

const keyAt = "lockgate.key";

/** The stored choices. Missing and invalid ones have their default. */
export function readChoices(): Choices {
  const stored = read(choicesAt);
  if (!isObject(stored)) return defaults;
  const compaction = isObject(stored["compaction"]) ? stored["compaction"] : {};
  return {
    provider: oneOf(["demo", "openai", "anthropic", "gemini"], stored["provider"]),
    preset: text(stored["preset"]) || "demo",
    baseUrl: text(stored["baseUrl"]),
    model: text(stored["model"]),
    contextWindow: count(stored["contextWindow"]),
    needsKey: stored["needsKey"] === true,
    store: oneOf(["indexeddb", "localstorage", "memory"], stored["store"]),
    compaction: {
      when: oneOf(["trigger", "overflow", "never"], compaction["when"]),
      triggerMessages: count(compaction["triggerMessages"]) ?? defaults.compaction.triggerMessages,
      triggerTokens: count(compaction["triggerTokens"]),
      keepMessages: count(compaction["keepMessages"]) ?? defaults.compaction.keepMessages,
    },
  };
}

/** The key that was stored for this address. It is never used for another one. */
export function readKey({ baseUrl }: Choices): Key {
  const stored = read(keyAt);
  if (!isObject(stored) || stored["for"] !== baseUrl) return noKey;
  return { value: text(stored["key"]), isKept: true };
}

/** Stores the choices, and the key if it is to be kept. False if the browser stores nothing. */
export function keep(choices: Choices, key: Key): boolean {
  const isKept = key.isKept && key.value !== "";
  const needsKey = !isKept && key.value !== "";
  // The old key is removed first, also from a storage that is full.
  const isGone = write(keyAt, null);
  const areStored = write(choicesAt, { ...choices, needsKey });
  return isGone && areStored && (!isKept || write(keyAt, { for: choices.baseUrl, key: key.value }));
}

function read(at: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(at) ?? "null");
  } catch {
    // Storage is forbidden, or the stored text is not JSON.
    return null;
  }
}

function write(at: string, value: object | null): boolean {
  try {
    if (value) localStorage.setItem(at, JSON.stringify(value));
    else localStorage.removeItem(at);
    return true;
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function count(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : null;
}

/** The value if it is one of the names, else the first name. */
function oneOf<T extends string>(names: readonly [T, ...T[]], value: unknown): T {
  return names.find((name) => name === value) ?? names[0];
}
