// The functions `openai`, `anthropic` and `gemini`: they check the options. Rust writes the requests and reads the answers.

import { LockgateError } from "../errors.js";
import { inPage, sender } from "../host/http.js";
import { marked } from "../values/internals.js";
import type { HttpModelOptions, Model } from "../types.js";

type Dialect = "openai" | "anthropic" | "gemini";

const BASE_URLS: Readonly<Record<Dialect, string>> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  gemini: "https://generativelanguage.googleapis.com/v1beta",
};

/** Services whose OpenAI-compatible API differs in details, by a part of their host name. */
const FLAVOURS: readonly (readonly [part: string, flavour: string])[] = [
  ["api.openai.com", "openai"],
  ["openai.azure.com", "openai"],
  ["mistral.ai", "mistral"],
  ["openrouter.ai", "openrouter"],
  ["dashscope", "dashscope"],
  ["bigmodel.cn", "glm"],
  ["api.z.ai", "glm"],
];

const MEMBERS = ["model", "baseUrl", "contextWindow", "apiKey", "headers", "fetch", "stream"] as const satisfies readonly (keyof HttpModelOptions)[];

/** A model behind an OpenAI-compatible chat-completions API. A `baseUrl` that ends in `/api` means Ollama's native API. */
export function openai(options: HttpModelOptions): Model {
  return provider("openai", options);
}

/** A model behind Anthropic's Messages API. */
export function anthropic(options: HttpModelOptions): Model {
  return provider("anthropic", options);
}

/** A model behind Google's generateContent API. */
export function gemini(options: HttpModelOptions): Model {
  return provider("gemini", options);
}

function provider(dialect: Dialect, options: HttpModelOptions): Model {
  check(dialect, options);
  const { model, contextWindow, stream } = options;
  const baseUrl = withVersion(dialect, options.baseUrl ?? BASE_URLS[dialect]);
  const plain = JSON.stringify({ dialect, model, contextWindow, stream, flavour: flavourOf(new URL(baseUrl)) });
  // Anthropic answers requests of a page only with this header, which confirms that the page may see the key.
  const extra = dialect === "anthropic" && inPage() ? { "anthropic-dangerous-direct-browser-access": "true" } : {};
  // A copy: if the user changes the object later, the model stays the same.
  const send = sender({ ...options, headers: { ...options.headers }, baseUrl }, extra);
  return marked<Model>({ id: model }, { kind: "model", id: model, contextWindow, provider: { plain, send } });
}

/** Users often write Anthropic's base URL without the version. */
function withVersion(dialect: Dialect, baseUrl: string): string {
  const url = new URL(baseUrl);
  if (dialect === "anthropic" && url.pathname === "/") url.pathname = "/v1";
  return url.href;
}

function flavourOf({ host, pathname }: URL): string {
  if (/\/api\/?$/.test(pathname)) return "ollama";
  return FLAVOURS.find(([part]) => host.includes(part))?.[1] ?? "";
}

function check(dialect: Dialect, options: HttpModelOptions): void {
  const wrong = (message: string, hint: string): LockgateError => new LockgateError("OPTIONS", message, { hint });
  if (typeof options !== "object" || options === null || typeof options.model !== "string" || options.model === "") {
    throw wrong(`${dialect} needs the name of a model`, `${dialect}({ model: "…", apiKey: "…" })`);
  }
  const unknown = Object.keys(options).find((name) => !(MEMBERS as readonly string[]).includes(name));
  if (unknown !== undefined) throw wrong(`a model has no option ${JSON.stringify(unknown)}`, `the options are ${MEMBERS.join(", ")}`);
  const { baseUrl, contextWindow, apiKey, headers, fetch, stream } = options;
  if (baseUrl !== undefined && !(typeof baseUrl === "string" && /^https?:\/\//.test(baseUrl) && URL.canParse(baseUrl))) {
    throw wrong("baseUrl is not an http or https URL", 'use an absolute URL such as "http://127.0.0.1:11434/v1"');
  }
  if (contextWindow !== undefined && !(Number.isInteger(contextWindow) && contextWindow > 0)) {
    throw wrong("contextWindow is not a number of tokens", "leave contextWindow out if it is not known");
  }
  if (apiKey !== undefined && typeof apiKey !== "string" && typeof apiKey !== "function") throw wrong("apiKey is neither text nor a function", 'apiKey: "…" or () => "…"');
  if (headers !== undefined && (typeof headers !== "object" || headers === null)) throw wrong("headers is not an object", 'headers: { "x-team": "…" }');
  if (fetch !== undefined && typeof fetch !== "function") throw wrong("fetch is not a function", "fetch(url, init) answers with a Response");
  if (stream !== undefined && typeof stream !== "boolean") throw wrong("stream is neither true nor false", "leave stream out for a streaming model");
}
