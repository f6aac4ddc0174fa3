// Tests the chosen model with one short question, and finds out why it fails.
import { createAgent, LockgateError, memoryStore } from "lockgate";
import type { ErrorCode } from "lockgate";
import { modelOf } from "../agent/agent.ts";
import type { Choices, Key } from "./choices.ts";
import { isLoopback } from "./in-use.ts";

export type Finding =
  | { readonly kind: "ready"; readonly seconds: number; readonly said: string }
  | { readonly kind: Failing; readonly detail: string }
  | { readonly kind: "model"; readonly detail: string; readonly models: readonly string[] };

type Failing =
  | "offline"
  | "mixed"
  | "gone"
  | "cors"
  | "lost"
  | "slow"
  | "key"
  | "pay"
  | "access"
  | "busy"
  | "failed"
  | "other";

export async function tryModel(choices: Choices, key: Key, signal: AbortSignal): Promise<Finding> {
  try {
    return await ask(choices, key, signal);
  } catch (error) {
    // Without a network, the part of the page with the provider's code may be missing too.
    if (!LockgateError.isInstance(error)) return { kind: navigator.onLine ? "other" : "offline", detail: String(error) };
    return explain(error, choices, key);
  }
}

async function ask(choices: Choices, key: Key, signal: AbortSignal): Promise<Finding> {
  const agent = await createAgent({
    name: "connection-test",
    model: await modelOf(choices, key),
    store: memoryStore(),
    sessionTools: false,
    retries: { attempts: 1 },
    timeouts: { model: 30_000 },
  });
  try {
    const startMs = performance.now();
    const { text } = await agent.call("Answer with one word: ready", { sessionId: "test", signal });
    const seconds = (performance.now() - startMs) / 1000;
    return { kind: "ready", seconds, said: text.slice(0, 80) };
  } finally {
    await agent.close();
  }
}

const kinds: { readonly [Code in ErrorCode]?: (message: string) => Failing } = {
  // The engine has one code for the account, and says in its message what is wrong with it.
  MODEL_AUTH: (message) =>
    message.includes("asks for payment") ? "pay" : message.includes("refuses access") ? "access" : "key",
  MODEL_RATE_LIMIT: () => "busy",
  MODEL_OVERLOADED: () => "failed",
  MODEL_TIMEOUT: () => "slow",
};

async function explain(error: LockgateError, choices: Choices, key: Key): Promise<Finding> {
  const detail = [error.message, error.hint].filter(Boolean).join(". ");
  if (error.code === "MODEL_NETWORK") return { kind: await networkFault(choices, key), detail: error.message };
  // An invalid address would be resolved against the URL of this page, so it is not fetched.
  if (error.code === "OPTIONS") return { kind: "other", detail };
  const kind = kinds[error.code];
  if (kind) return { kind: kind(error.message), detail: error.message };
  const models = await modelsOf(choices, key).catch((): readonly string[] => []);
  const isListed = models.includes(choices.model);
  const isUnknown = models.length ? !isListed : /not.?found|not exist|unknown|404/i.test(detail);
  return isUnknown ? { kind: "model", detail: error.message, models } : { kind: "other", detail };
}

async function networkFault(choices: Choices, key: Key): Promise<Failing> {
  const { baseUrl } = choices;
  if (!navigator.onLine && !isLoopback(baseUrl)) return "offline";
  if (location.protocol === "https:" && baseUrl.startsWith("http:") && !isLoopback(baseUrl)) return "mixed";
  if (!(await answers(baseUrl))) return "gone";
  // If this page can read an answer of the server, the server allows the page.
  return modelsOf(choices, key).then(
    () => "lost",
    // A SyntaxError: the answer could be read, and was no JSON.
    (error: unknown) => (error instanceof SyntaxError ? "lost" : "cors"),
  );
}

/**
 * Whether a server answers at this address. Without CORS a page cannot read the answer, but it learns that there was one. This
 * distinguishes a server that does not allow this page from a server that is not running.
 */
async function answers(baseUrl: string): Promise<boolean> {
  try {
    await fetch(baseUrl, { mode: "no-cors", credentials: "omit", cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/** The names of the models at this address. */
export async function modelsOf(choices: Choices, key: Key): Promise<readonly string[]> {
  const base = choices.baseUrl.replace(/\/+$/, "");
  const response = await fetch(`${base}/models`, {
    headers: key.value ? headersOf[choices.provider](key.value) : {},
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
    redirect: "error",
  });
  if (!response.ok) return [];
  const body: unknown = await response.json();
  return namesIn(body);
}

const headersOf: Readonly<Record<Choices["provider"], (key: string) => Record<string, string>>> = {
  demo: () => ({}),
  openai: (key) => ({ authorization: `Bearer ${key}` }),
  anthropic: (key) => ({
    "x-api-key": key,
    "anthropic-version": "2023-06-01",
    "anthropic-dangerous-direct-browser-access": "true",
  }),
  gemini: (key) => ({ "x-goog-api-key": key }),
};

/** The names in the answer: `{ models: [{ name: "models/…" }] }` from Gemini, `{ data: [{ id }] }` from most others. */
function namesIn(body: unknown): readonly string[] {
  if (typeof body !== "object" || body === null) return [];
  const { data, models } = body as { readonly data?: unknown; readonly models?: unknown };
  const list: readonly unknown[] = Array.isArray(data) ? data : Array.isArray(models) ? models : [];
  return list
    .map((item) => (item ?? {}) as { readonly id?: unknown; readonly name?: unknown })
    .map(({ id, name }) => (typeof id === "string" ? id : typeof name === "string" ? name : ""))
    .map((name) => name.replace(/^models\//, ""))
    .filter(Boolean)
    .sort();
}
