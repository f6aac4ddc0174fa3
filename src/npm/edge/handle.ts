// The entry of the worker: checks origin, caller, rate and size of a request, and passes it to the object of the caller.

import { LockgateError } from "../errors.js";
import { checkId } from "../values/arguments.js";
import { bodyOf } from "./body.js";
import { MAX_HELD_BYTES } from "./held.js";
import type { Right } from "../protocol/methods.js";
import { crossed, isAllowed, isForgeable, preflight } from "./origins.js";
import { fromObject, notTaken, refused } from "./reply.js";
import { rightsOf } from "./rights.js";
import { CALLER, type Sender, toHeader } from "./sender.js";

/** The sender of a request. `attributes` are passed to the tools and the middleware of the caller's calls, and are never stored. */
export interface Caller {
  /** The user, or null for an anonymous visitor. Everybody who knows the id of an anonymous session can read it, so use random ids. */
  readonly userId: string | null;
  /** The `attributes` of every call of this caller. Default: none. */
  readonly attributes?: Readonly<Record<string, string | number | boolean | null>>;
  /** What the caller may do; each route needs one of these rights. Without "permissions", no request changes what tools may do or ends plan mode. Default: talk and manage. */
  readonly rights?: readonly Right[];
}

export type { Right } from "../protocol/methods.js";

/** Options of `handle`. */
export interface HandleOptions {
  /** The binding of your class that extends AgentObject. */
  readonly objects: { idFromName(name: string): any; get(id: any): { fetch(request: any): Promise<any> } };
  /** Returns the caller, or a response such as 401. Nothing else decides whose sessions a request reaches. */
  authenticate(request: Request): Caller | Response | Promise<Caller | Response>;
  /** The path before the routes, such as "/agent". Default "". */
  readonly basePath?: string;
  /** Other origins whose pages may send requests, such as "https://example.org". "*" is any origin, without cookies. Default: none. */
  readonly origins?: readonly string[];
  /** The largest request body. Default 4 MiB. */
  readonly maxBodyBytes?: number;
  /** The most bytes that one object holds in memory for its clients: events for clients that reconnect, and what slow readers have not read. The bodies of its unfinished requests have the same limit once more. Default 8 MiB. */
  readonly maxHeldBytes?: number;
  /** Until the body of a request must have arrived, in ms. Default 30 s. */
  readonly bodyTimeoutMs?: number;
  /** Returns true to accept the request. Any other value refuses it with 429. */
  rateLimit?(caller: Caller, request: Request): boolean | Promise<boolean>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const BODY_TIMEOUT_MS = 30_000;

/** Answers a request. The Durable Object of the caller does the work. */
export async function handle(request: Request, options: HandleOptions): Promise<Response> {
  const { origins = [] } = options;
  if (!isAllowed(request, origins)) return notTaken(403, "pages of this origin may not send requests", "add the origin to origins");
  if (request.method === "OPTIONS") return preflight(request, origins);
  if (isForgeable(request)) {
    const hint = "send the header content-type: application/json, or x-lockgate: 1, with every request that changes something";
    return crossed(request, origins, refused(new LockgateError("FORBIDDEN", "a page of another site could have sent this request", { hint })));
  }
  const response = await answered(request, options).catch((error: unknown) => refused(error));
  return crossed(request, origins, response);
}

async function answered(request: Request, options: HandleOptions): Promise<Response> {
  const { basePath = "", rateLimit, maxBodyBytes = MAX_BODY_BYTES, bodyTimeoutMs = BODY_TIMEOUT_MS, maxHeldBytes } = options;
  const url = new URL(request.url);
  const path = below(url.pathname, basePath);
  if (path === undefined) return notTaken(404, "there is no such route", `the routes begin with ${basePath}/`);
  const caller = await options.authenticate(request);
  if (caller instanceof Response) return caller;
  checkCaller(caller);
  rightsOf(caller.rights);
  if (rateLimit !== undefined && (await rateLimit.call(options, caller, request)) !== true) {
    return refused(new LockgateError("BUSY", "too many requests", { hint: "wait a little and try again" }));
  }
  const limits = { maxBytes: maxBodyBytes, maxHeldBytes: maxHeldBytes ?? MAX_HELD_BYTES, timeoutMs: bodyTimeoutMs };
  const body = await bodyOf(request, nameIn(caller, path), limits);
  if (body instanceof Response) return body;
  const sender: Sender = { caller, session: sessionOf(caller, path, url, body), basePath, maxHeldBytes };
  return passOn(request, { url: `https://object/${path}${url.search}`, sender, body, options });
}

/** The path after the base path, without a slash at its start; undefined for other paths. */
function below(path: string, base: string): string | undefined {
  const root = base.replace(/\/+$/, "");
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1).replace(/\/+$/, "") : undefined;
}

function checkCaller(caller: unknown): asserts caller is Caller {
  const { userId } = (caller ?? {}) as Partial<Caller>;
  if (userId === null) return;
  if (typeof userId !== "string" || userId === "" || /\p{Surrogate}/u.test(userId)) {
    const hint = "return { userId } from authenticate: text, or null for an anonymous visitor; or return a Response";
    throw new LockgateError("ID_INVALID", "authenticate did not return a caller", { hint });
  }
}

/** The object of the caller as far as it is known before the body is read; undefined if only the body names the session. */
function nameIn({ userId }: Caller, path: string): string | undefined {
  if (userId !== null) return `user ${userId}`;
  const [kind, id] = path.split("/");
  return kind === "sessions" && id !== undefined ? `session ${id}` : undefined;
}

/** The session of an anonymous visitor; null for a user. It is unknown which anonymous sessions belong together, so each has its own object. */
function sessionOf(caller: Caller, path: string, url: URL, body: Uint8Array | undefined): string | null {
  if (caller.userId !== null) return null;
  const [kind, id] = path.split("/");
  const named = (kind === "sessions" || kind === "chat") && id !== undefined ? decoded(id) : (url.searchParams.get("sessionId") ?? chatIn(kind, body));
  if (named !== undefined && named !== "") {
    checkId("sessionId", named);
    return named;
  }
  const hint = "an anonymous visitor must name a session; lists of sessions, files and searches over all sessions need a userId";
  throw new LockgateError("ID_INVALID", "no session is named", { hint });
}

function chatIn(kind: string | undefined, body: Uint8Array | undefined): unknown {
  if (kind !== "chat" || body === undefined) return undefined;
  try {
    return (JSON.parse(new TextDecoder().decode(body)) as { id?: unknown } | null)?.id;
  } catch {
    return undefined;
  }
}

/** A percent-decoded part of a path. Throws ID_INVALID if it is not well-formed. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new LockgateError("ID_INVALID", "the path is not well-formed", { hint: "use encodeURIComponent(sessionId)" });
  }
}

/** Passes the request to the object, without cookies, keys and other headers that the object does not need. */
async function passOn(
  request: Request,
  { url, sender, body, options }: { readonly url: string; readonly sender: Sender; readonly body: Uint8Array | undefined; readonly options: HandleOptions },
): Promise<Response> {
  const { objects } = options;
  const { caller, session } = sender;
  const headers = new Headers({ [CALLER]: toHeader(sender) });
  for (const name of ["accept", "content-type", "last-event-id"]) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const object = objects.get(objects.idFromName(session === null ? `user ${caller.userId}` : `session ${session}`));
  const init = { method: request.method, headers, ...(body === undefined ? {} : { body }) };
  try {
    return (await object.fetch(new Request(url, init as RequestInit))) as Response;
  } catch (error) {
    throw fromObject(error);
  }
}
