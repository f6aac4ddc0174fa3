// Requests to providers. Address, key and the user's headers are joined here, and never cross into the wasm.

import { LockgateError } from "./errors.js";
import type { Filter } from "./secrets.js";
import { Secrets } from "./secrets.js";
import type { HttpModelOptions } from "./types.js";

/** Path below the base address, headers, and the header of the key with what stands before it. */
type Around = readonly [path: string, headers: readonly (readonly [string, string])[], key: readonly [string, string]];

/** A request under way, as src/wasm/http.rs pulls it. */
export interface Answer {
  begun(): Promise<void>;
  readonly status: number;
  header(name: string): string | undefined;
  next(): Promise<Uint8Array>;
  cancel(): void;
}

/** Sends a request of a model. */
export type Send = (around: string, body: Uint8Array) => Answer;

/** How requests of one model are sent. */
export function sender(options: HttpModelOptions & { readonly baseUrl: string }, extraHeaders: Readonly<Record<string, string>>): Send {
  const target = new Target(options, extraHeaders);
  return (around, body) => new Sent(target, JSON.parse(around) as Around, body.slice());
}

/** Where requests go, and with what: everything here is the user's own. */
class Target {
  readonly secrets = new Secrets();
  readonly #base: URL;
  readonly #basic: string | undefined;
  readonly #options: HttpModelOptions;
  readonly #extraHeaders: Readonly<Record<string, string>>;

  constructor(options: HttpModelOptions & { readonly baseUrl: string }, extraHeaders: Readonly<Record<string, string>>) {
    this.#options = options;
    this.#extraHeaders = extraHeaders;
    this.#base = new URL(options.baseUrl);
    const { username, password, searchParams } = this.#base;
    for (const value of [username, password, decodeURIComponent(username), decodeURIComponent(password), ...searchParams.values()]) this.secrets.add(value);
    for (const value of Object.values(options.headers ?? {})) this.#know(String(value));
    // fetch refuses an address with credentials in it.
    if (username !== "" || password !== "") this.#basic = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    this.#base.username = this.#base.password = "";
  }

  get fetch(): (url: string, init: RequestInit) => Promise<Response> {
    // Taken from the global scope when called: Workers have none while they start.
    return this.#options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  }

  get url(): URL {
    return this.#base;
  }

  /** The address of a path; the query of both is kept. */
  at(path: string): string {
    const [below, query = ""] = path.split("?");
    const url = new URL(this.#base);
    url.pathname = url.pathname.replace(/\/+$/, "") + below;
    for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
    return url.href;
  }

  async headers(given: Around[1], [name, before]: Around[2]): Promise<Headers> {
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

  /** A header's value is a secret, and so is each of its words: `Bearer` stands before many. */
  #know(value: string): void {
    this.secrets.add(value);
    for (const word of value.split(/\s+/)) this.secrets.add(word);
  }
}

class Sent implements Answer {
  status = 0;
  readonly #target: Target;
  readonly #controller = new AbortController();
  readonly #begun: Promise<void>;
  #response: Response | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #filter: Filter | undefined;
  #over = false;

  constructor(target: Target, around: Around, body: Uint8Array) {
    this.#target = target;
    this.#begun = this.#begin(around, body);
    // Somebody may cancel before anybody waits for it.
    this.#begun.catch(() => {});
  }

  begun(): Promise<void> {
    return this.#begun;
  }

  header(name: string): string | undefined {
    const value = this.#response?.headers.get(name);
    return value === null || value === undefined ? undefined : this.#target.secrets.text(value);
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

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    queueMicrotask(() => {
      this.#controller.abort();
      this.#reader?.cancel().catch(() => {});
    });
  }

  async #begin([path, headers, key]: Around, body: Uint8Array): Promise<void> {
    // Not while Rust is on the stack: what a user wrote may call into it.
    await null;
    const init = { method: "POST", headers: await this.#headers(headers, key), body, signal: this.#controller.signal };
    // A redirect is never followed: it would take the key along.
    const response = await this.#fetch(this.#target.at(path), { ...init, redirect: "manual", ...pageOnly() } as RequestInit);
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      this.cancel();
      throw new LockgateError("MODEL_NETWORK", "the provider answered with a redirect, which is not followed", {
        hint: "the key would go along with it: set baseUrl to the final address",
      });
    }
    this.#response = response;
    this.status = response.status;
    this.#filter = this.#target.secrets.filter();
    this.#reader = response.body?.getReader();
  }

  async #headers(headers: Around[1], key: Around[2]): Promise<Headers> {
    try {
      return await this.#target.headers(headers, key);
    } catch (error) {
      throw new LockgateError("MODEL_AUTH", `the key could not be had: ${this.#words(error)}`, { hint: "look at apiKey and headers" });
    }
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#target.fetch(url, init);
    } catch (error) {
      throw this.#unreachable(error, "the provider cannot be reached");
    }
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
    try {
      return await reader.read();
    } catch (error) {
      throw this.#unreachable(error, "the connection to the provider broke");
    }
  }

  /** What was thrown is not passed on: it may hold the request, and with it the key. */
  #unreachable(error: unknown, what: string): LockgateError {
    return new LockgateError("MODEL_NETWORK", `${what}: ${this.#words(error)}`, { hint: likelyCause(this.#target.url, error) });
  }

  #words(error: unknown): string {
    const { message, cause } = (error ?? {}) as { message?: unknown; cause?: { code?: unknown } };
    const code = typeof cause?.code === "string" ? ` (${cause.code})` : "";
    const words = `${typeof message === "string" ? message : String(error)}${code}`;
    return this.#target.secrets.text(words).slice(0, 500);
  }
}

/** Model traffic leaves no trace in caches and takes no cookies along; Workers have neither, and refuse the words. */
function pageOnly(): object {
  return isEdge() ? {} : { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
}

const isEdge = (): boolean => globalThis.navigator?.userAgent === "Cloudflare-Workers";

/** Whether this is a page, or a worker of one. */
export function inPage(): boolean {
  const { document, WorkerGlobalScope } = globalThis as { document?: unknown; WorkerGlobalScope?: unknown };
  return document !== undefined || (typeof WorkerGlobalScope === "function" && !isEdge());
}

/** A page is told only that something failed: this is what it usually is. */
function likelyCause(url: URL, error: unknown): string {
  const { location, navigator } = globalThis as { location?: Location; navigator?: Navigator };
  if (navigator?.onLine === false) return "this device is offline";
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (inPage() && location?.protocol === "https:" && url.protocol === "http:" && !isLocal) {
    return "a page on https cannot reach an address on http (mixed content): use https for baseUrl";
  }
  if (inPage() && location !== undefined && location.origin !== url.origin) {
    return `likely CORS: ${url.host} must allow this page's origin, or be reached through a server of your own; or it is not running`;
  }
  const code = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  if (code === "ECONNREFUSED") return `nothing listens at ${url.host}: is it running?`;
  return "check baseUrl and the connection";
}
