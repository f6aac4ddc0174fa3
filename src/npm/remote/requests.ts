// Requests to a worker over HTTP, and its answers.

import { LockgateError } from "../errors.js";
import type { Input, Slot } from "../types.js";
import { METHODS, STREAMS } from "../protocol/methods.js";
import type { Answers, Arguments, MethodName, Row, StreamName } from "../protocol/methods.js";
import { fromWire, pathOf, toSent } from "../protocol/wire.js";

/** Where the worker is, and how it is asked. */
export interface RemoteOptions {
  /** The URL before the worker's routes, such as "https://example.org/agent" or "/agent". */
  readonly url: string;
  /** Headers of every request, for example for authentication. A function is called before every request. */
  readonly headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Replaces the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const MOST_REDIRECTS = 5;

type Args = Readonly<Record<string, unknown>>;

/** One request. */
export interface RemoteRequest {
  /** The route. */
  readonly name: MethodName | StreamName;
  /** The session in the path. Absent for routes without a session. */
  readonly slot?: Slot | undefined;
  /** The members of the query or of the JSON body. Default: none. */
  readonly args?: Args;
  /** The header `accept`. Default: any type. */
  readonly accept?: string;
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
}

/** The connection to one worker. */
export class Wire {
  readonly #options: RemoteOptions;
  readonly #root: string;

  constructor(options: RemoteOptions) {
    if (typeof options?.url !== "string" || options.url === "") {
      throw new LockgateError("OPTIONS", "a remote agent has no url", { hint: 'remoteAgent({ url: "/agent" })' });
    }
    this.#options = options;
    this.#root = options.url.replace(/\/+$/, "");
  }

  /** Asks a method of the table. The worker's agent has the same table, so the answer has the type that the table says. */
  async ask<N extends MethodName>(name: N, given: Arguments[N]): Promise<Answers[N]> {
    const { slot, members } = toSent(name, given);
    const [, , , , answer]: Row = METHODS[name];
    const isText = answer === "text";
    const response = await this.send({ name, slot, args: members, accept: isText ? "*/*" : "application/json" });
    return (await this.read(() => (isText ? response.text() : response.json()))) as Answers[N];
  }

  /** Stops the running call of a session, or the call `callId`. Unlike other answers, this one is inside an object. */
  async interrupt(slot: Slot, args: { readonly callId?: string; readonly message?: Input | undefined }): Promise<boolean> {
    const response = await this.send({ name: "interrupt", slot, args, accept: "application/json" });
    const { interrupted } = (await this.read(() => response.json())) as { readonly interrupted: boolean };
    return interrupted;
  }

  /** The lines of an answer, as they arrive. */
  async *lines(name: StreamName): AsyncGenerator<string, undefined> {
    const { body } = await this.send({ name });
    if (body === null) return undefined;
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await this.read(() => reader.read());
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield `${line}\n`;
      if (done) return undefined;
    }
  }

  /** Sends a request. If the worker refuses it, throws the error of the worker. */
  async send({ name, slot, args = {}, accept = "*/*", signal }: RemoteRequest): Promise<Response> {
    const [verb, path] = { ...METHODS, ...STREAMS }[name];
    const given = Object.entries(args).filter(([, value]) => value !== undefined);
    const isQuery = verb === "GET" || verb === "DELETE";
    const query = isQuery && given.length > 0 ? `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()}` : "";
    const { headers: own, fetch: ownFetch } = this.#options;
    // A worker answers a request that changes something only with this header, which pages of other origins cannot set.
    const headers = { accept, ...(verb === "GET" ? {} : { "content-type": "application/json" }), ...(typeof own === "function" ? await own() : own) };
    const url = `${this.#root}/${pathOf(path, slot?.sessionId)}${query}`;
    const init = { method: verb, headers, ...(isQuery ? {} : { body: bodyOf(given) }), ...(signal === undefined ? {} : { signal }) };
    const response = await this.#follow(url, init, ownFetch ?? fetch);
    if (response.ok) return response;
    throw await refusalOf(response, slot);
  }

  /**
   * Sends a request, and follows redirects that stay with the same origin. Another origin must not get the headers, which may
   * contain a key. A page cannot see where a redirect leads, so there none is followed.
   */
  async #follow(url: string, given: RequestInit, send: (url: string, init: RequestInit) => Promise<Response>): Promise<Response> {
    const init: RequestInit = { ...given, redirect: "manual" };
    let at = url;
    for (let n_hops = 0; n_hops <= MOST_REDIRECTS; n_hops += 1) {
      const response = await this.read(() => send(at, init));
      const location = response.headers.get("location");
      const isRedirect = response.type === "opaqueredirect" || REDIRECTS.includes(response.status);
      if (!isRedirect) return response;
      await response.body?.cancel().catch(() => {});
      const next = location === null ? undefined : new URL(location, absolute(at));
      const keepsMethod = response.status >= 307 || given.method === "GET";
      if (next === undefined || next.origin !== absolute(at).origin || !keepsMethod) throw redirected(this.#root);
      at = next.href;
    }
    throw redirected(this.#root);
  }

  /** Turns failures of the connection into STORE_UNAVAILABLE: the sessions exist but cannot be reached. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      throw new LockgateError("STORE_UNAVAILABLE", `the worker at ${this.#root} cannot be reached`, { hint: "check url and connection; add other origins to the worker's origins", cause });
    }
  }
}

function bodyOf(given: readonly (readonly [string, unknown])[]): string {
  try {
    return JSON.stringify(Object.fromEntries(given));
  } catch (cause) {
    throw new LockgateError("INPUT_INVALID", "the input is not JSON", { hint: "use plain data without cycles", cause });
  }
}

async function refusalOf(response: Response, slot: Slot | undefined): Promise<LockgateError> {
  const text = await response.text().catch(() => "");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // The answer comes from something else than a worker of this package, or from `authenticate`.
  }
  return fromWire(body, response.status, slot);
}

/** A URL that may be relative to the page. */
function absolute(url: string): URL {
  return new URL(url, (globalThis as { readonly location?: { readonly href: string } }).location?.href ?? "http://localhost");
}

function redirected(root: string): LockgateError {
  const hint = "pass the url that the redirect leads to; the headers of this agent are never sent to another origin";
  return new LockgateError("OPTIONS", `the worker at ${root} redirects to another address`, { hint });
}
