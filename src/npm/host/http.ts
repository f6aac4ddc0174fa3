// Sends requests to providers. Base URL, API key and the user's headers are added here and never reach the wasm.

import { LockgateError } from "../errors.js";
import type { JsResponse } from "../glue.js";
import { SecretFilter } from "./secret-filter.js";
import type { KnownSecrets } from "./secret-search.js";
import { Secrets } from "./secrets.js";
import type { HttpModelOptions } from "../types.js";

/** The path below the base URL, headers, and the header of the API key with the prefix before the key. */
type RequestHead = readonly [path: string, headers: readonly (readonly [string, string])[], key: readonly [string, string]];

/** How much of a response is read after its answer is complete, in bytes and milliseconds. */
const MOST_REST = 64 * 1_024;
const MOST_REST_MS = 1_000;

/** Sends a request of a model. */
export type SendRequest = (head: string, body: Uint8Array) => JsResponse;

/** Returns the function that sends the requests of one model. */
export function sender(options: HttpModelOptions & { readonly baseUrl: string }, extraHeaders: Readonly<Record<string, string>>): SendRequest {
  const target = new Target(options, extraHeaders);
  return (head, body) => new SentRequest(target, JSON.parse(head) as RequestHead, body.slice());
}

/** The base URL, API key and headers of a model. All of them come from the user. */
class Target {
  readonly secrets = new Secrets();
  /** Whether an answer could be read before. Then this page is allowed, so CORS is not the cause of a failure. */
  hasAnswered = false;
  readonly #base: URL;
  readonly #basic: string | undefined;
  readonly #options: HttpModelOptions;
  readonly #extraHeaders: Readonly<Record<string, string>>;

  constructor(options: HttpModelOptions & { readonly baseUrl: string }, extraHeaders: Readonly<Record<string, string>>) {
    this.#options = options;
    this.#extraHeaders = extraHeaders;
    this.#base = new URL(options.baseUrl);
    const { username, password, searchParams } = this.#base;
    // `fetch` refuses a URL that contains a user name or a password.
    if (username !== "" || password !== "") this.#basic = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    this.secrets.keepNamed("user", decodeURIComponent(username));
    this.secrets.keepNamed("password", decodeURIComponent(password));
    this.secrets.keepNamed("authorization", this.#basic ?? "");
    for (const [name, value] of searchParams) this.secrets.keepNamed(name, value);
    for (const [name, value] of Object.entries(options.headers ?? {})) this.secrets.keepNamed(name, String(value));
    if (typeof options.apiKey === "string") this.secrets.keepNamed("key", options.apiKey);
    this.#base.username = this.#base.password = "";
  }

  get fetch(): (url: string, init: RequestInit) => Promise<Response> {
    // Read from the global scope on each call, because Workers do not have it while they start.
    return this.#options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  }

  get url(): URL {
    return this.#base;
  }

  /** The URL of a path. The query parameters of both are kept. */
  at(path: string): string {
    const [below, query = ""] = path.split("?");
    const url = new URL(this.#base);
    url.pathname = url.pathname.replace(/\/+$/, "") + below;
    for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
    return url.href;
  }

  async headers(given: RequestHead[1], [name, before]: RequestHead[2]): Promise<Headers> {
    const { apiKey, headers = {} } = this.#options;
    const all = new Headers(given as [string, string][]);
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    if (key !== undefined && key !== "") {
      this.secrets.add(key);
      all.set(name, before + key);
      for (const [extra, value] of Object.entries(this.#extraHeaders)) all.set(extra, value);
    }
    if (this.#basic !== undefined) all.set("authorization", `Basic ${this.#basic}`);
    for (const [own, value] of Object.entries(headers)) all.set(own, value);
    return all;
  }
}

class SentRequest implements JsResponse {
  status = 0;
  readonly #target: Target;
  readonly #controller = new AbortController();
  readonly #begun: Promise<void>;
  #response: Response | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** The secrets when the request was sent, with its own. Other calls may have made the model forget its key since. */
  #secrets: KnownSecrets;
  #filter: SecretFilter | undefined;
  #over = false;

  constructor(target: Target, head: RequestHead, body: Uint8Array) {
    this.#target = target;
    this.#secrets = target.secrets.known();
    this.#begun = this.#begin(head, body);
    // The promise may be rejected by a cancel before any code waits for it.
    this.#begun.catch(() => {});
  }

  begun(): Promise<void> {
    return this.#begun;
  }

  header(name: string): string | undefined {
    const value = this.#response?.headers.get(name);
    return value === null || value === undefined ? undefined : this.#secrets.text(value);
  }

  async next(): Promise<Uint8Array> {
    while (!this.#over && this.#reader !== undefined) {
      const { done, value } = await this.#read(this.#reader);
      this.#over = done;
      const clean = done ? this.#filter!.end() : this.#filter!.push(value!);
      if (clean.length > 0) return clean;
    }
    return new Uint8Array();
  }

  done(): void {
    if (this.#over) return;
    this.#over = true;
    // Code of the user must not run while Rust is on the stack: the body may be a stream of the user's.
    queueMicrotask(() => void this.#drain());
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    queueMicrotask(() => {
      this.#controller.abort();
      this.#reader?.cancel().catch(() => {});
    });
  }

  async #begin([path, headers, key]: RequestHead, body: Uint8Array): Promise<void> {
    // Code of the user must not run while Rust is on the stack, because it may call into Rust.
    await null;
    const init = { method: "POST", headers: await this.#headers(headers, key), body, signal: this.#controller.signal };
    this.#secrets = this.#target.secrets.known();
    // Redirects are never followed, because the request to the new URL would contain the key.
    const response = await this.#fetch(this.#target.at(path), { ...init, redirect: "manual", ...pageOnly() } as RequestInit);
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      this.cancel();
      throw new LockgateError("MODEL_NETWORK", "the provider answered with a redirect, which is not followed", {
        hint: "the target of the redirect would get the key: set baseUrl to the final URL",
      });
    }
    this.#target.hasAnswered = true;
    this.#response = response;
    this.status = response.status;
    this.#filter = new SecretFilter(this.#secrets);
    this.#reader = response.body?.getReader();
  }

  async #headers(headers: RequestHead[1], key: RequestHead[2]): Promise<Headers> {
    try {
      return await this.#target.headers(headers, key);
    } catch (error) {
      this.#secrets = this.#target.secrets.known();
      throw new LockgateError("MODEL_AUTH", `cannot get the key or the headers: ${this.#words(error)}`, { hint: "check apiKey and headers" });
    }
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#target.fetch(url, init);
    } catch (error) {
      throw this.#unreachable(error, "the provider cannot be reached", likelyCause(this.#target, error));
    }
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
    try {
      return await reader.read();
    } catch (error) {
      // The page could read the beginning of this answer, so CORS is not the cause.
      throw this.#unreachable(error, "the connection to the provider broke", "check the connection, and try again");
    }
  }

  /** Reads the rest of the response, so that its connection can be used again. A long or slow rest is cut off. */
  async #drain(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined) return;
    const stop = (): void => {
      this.#controller.abort();
      reader.cancel().catch(() => {});
    };
    const limit = setTimeout(stop, MOST_REST_MS);
    try {
      let n = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        n += next.value.length;
        if (n > MOST_REST) return stop();
      }
    } catch {
      // The answer is complete: what breaks now loses nothing.
    } finally {
      clearTimeout(limit);
    }
  }

  /** The original error is not passed on: it may contain the request, and so the key. */
  #unreachable(error: unknown, what: string, hint: string): LockgateError {
    return new LockgateError("MODEL_NETWORK", `${what}: ${this.#words(error)}`, { hint });
  }

  #words(error: unknown): string {
    const { message, cause } = (error ?? {}) as { message?: unknown; cause?: { code?: unknown } };
    const code = typeof cause?.code === "string" ? ` (${cause.code})` : "";
    const words = `${typeof message === "string" ? message : String(error)}${code}`;
    return this.#secrets.text(words).slice(0, 500);
  }
}

/** Model requests are not cached and send no cookies. Workers have neither, and refuse these options. */
function pageOnly(): object {
  return isEdge() ? {} : { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
}

const isEdge = (): boolean => globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Whether this code runs in a page, or in a worker of a page. */
export function inPage(): boolean {
  const { document, WorkerGlobalScope } = globalThis as { document?: unknown; WorkerGlobalScope?: unknown };
  return document !== undefined || (typeof WorkerGlobalScope === "function" && !isEdge());
}

/** A browser tells a page only that a request failed. This is the probable cause. */
function likelyCause({ url, hasAnswered }: Target, error: unknown): string {
  const { location, navigator } = globalThis as { location?: Location; navigator?: Navigator };
  if (navigator?.onLine === false) return "this device is offline";
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (inPage() && location?.protocol === "https:" && url.protocol === "http:" && !isLocal) {
    return "a page with https cannot reach a URL with http (mixed content): use https for baseUrl";
  }
  if (inPage() && location !== undefined && location.origin !== url.origin && !hasAnswered) {
    return `a browser does not say why: ${url.host} is down, the connection was lost, or it does not allow this page's origin (CORS; your own server can be a proxy)`;
  }
  const code = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  if (code === "ECONNREFUSED") return `nothing listens at ${url.host}: is it running?`;
  return "check baseUrl and the connection";
}
