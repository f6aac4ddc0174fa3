// Asking a worker over HTTP: addresses, headers, and what it answers.

import { LockgateError } from "./errors.js";
import type { Slot } from "./types.js";
import { ROUTES, STREAMS, fromWire, pathOf } from "./wire.js";
import type { RouteName, StreamName, WireError } from "./wire.js";

/** Where the worker is, and what its requests carry. */
export interface RemoteOptions {
  /** Where the worker's routes begin, such as "https://example.org/agent" or "/agent". */
  readonly url: string;
  /** For whoever authenticates: asked before every request if it is a function. */
  readonly headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

type Args = Readonly<Record<string, unknown>>;

/** One request. */
export interface Sent {
  readonly name: RouteName | StreamName;
  readonly slot?: Slot | undefined;
  readonly args?: Args;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

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

  /** What is answered once, as JSON. */
  async ask<T>(name: RouteName, slot: Slot | undefined, args: Args): Promise<T> {
    const response = await this.send({ name, slot, args, accept: "application/json" });
    return (await this.read(() => response.json())) as T;
  }

  async text(name: RouteName, slot: Slot | undefined, args: Args): Promise<string> {
    const response = await this.send({ name, slot, args });
    return this.read(() => response.text());
  }

  /** The lines of an answer, as they come. */
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

  /** Sends a request; what is refused is thrown as it was meant. */
  async send({ name, slot, args = {}, accept = "*/*", signal }: Sent): Promise<Response> {
    const [verb, path] = { ...ROUTES, ...STREAMS }[name];
    const given = Object.entries(args).filter(([, value]) => value !== undefined);
    const isQuery = verb === "GET" || verb === "DELETE";
    const query = isQuery && given.length > 0 ? `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()}` : "";
    const { headers: own, fetch: ownFetch } = this.#options;
    const headers = { accept, ...(isQuery ? {} : { "content-type": "application/json" }), ...(typeof own === "function" ? await own() : own) };
    const url = `${this.#root}/${pathOf(path, slot?.sessionId)}${query}`;
    const init = { method: verb, headers, ...(isQuery ? {} : { body: bodyOf(given) }), ...(signal === undefined ? {} : { signal }) };
    const response = await this.read(() => (ownFetch ?? fetch)(url, init));
    if (response.ok) return response;
    throw await refusalOf(response, slot);
  }

  /** What breaks on the way is one kind of error: the sessions are there, and cannot be reached. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      throw new LockgateError("STORE_UNAVAILABLE", `the worker at ${this.#root} cannot be reached`, { hint: "check the url and the connection; from another origin, name it in origins", cause });
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
  try {
    return fromWire(JSON.parse(text) as Partial<WireError>, "INTERNAL", slot);
  } catch {
    const code = response.status === 429 ? "BUSY" : response.status >= 500 ? "STORE_UNAVAILABLE" : "INPUT_INVALID";
    return new LockgateError(code, `the worker answered with HTTP ${response.status}`, { hint: "is that the address of a worker with handle?", slot });
  }
}
