// The front of the worker: who asks, from where, how much, and which object answers.

import { LockgateError } from "../errors.js";
import { crossed, isAllowed, preflight } from "./origins.js";
import { fromObject, notTaken, refused } from "./reply.js";
import { CALLER, type Sender, toHeader } from "./sender.js";

/** Who asks, as `authenticate` says. `attributes` reach the tools and middleware of their calls, and are never stored. */
export interface Caller {
  /** null: an anonymous visitor. Whoever knows the id of an anonymous session can read it: let it be a random one. */
  readonly userId: string | null;
  readonly attributes?: Readonly<Record<string, string | number | boolean | null>>;
}

/** How requests reach the objects of those who ask. */
export interface HandleOptions {
  /** The binding of the class that extends AgentObject. */
  readonly objects: { idFromName(name: string): any; get(id: any): { fetch(request: any): Promise<any> } };
  /** Says who asks, or answers instead, for example with 401. Nothing else decides whose sessions are reached. */
  authenticate(request: Request): Caller | Response | Promise<Caller | Response>;
  /** What stands before the routes, such as "/agent". Default "". */
  readonly basePath?: string;
  /** Pages of other origins that may ask, such as "https://example.org"; "*" is any, without cookies. Default: none. */
  readonly origins?: readonly string[];
  /** The largest body. Default 4 MiB. */
  readonly maxBodyBytes?: number;
  /** Anything but true refuses the request with 429. */
  rateLimit?(caller: Caller, request: Request): boolean | Promise<boolean>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** How many times the limit is listened to before the line is cut. */
const PATIENCE = 4;

/** Answers a request with the object of whoever asks. */
export async function handle(request: Request, options: HandleOptions): Promise<Response> {
  const { origins = [] } = options;
  if (!isAllowed(request, origins)) return notTaken(403, "pages of this origin may not ask", "name it in origins");
  if (request.method === "OPTIONS") return preflight(request, origins);
  const response = await answered(request, options).catch((error: unknown) => refused(error));
  return crossed(request, origins, response);
}

async function answered(request: Request, options: HandleOptions): Promise<Response> {
  const { basePath = "", rateLimit, maxBodyBytes = MAX_BODY_BYTES } = options;
  const url = new URL(request.url);
  const path = below(url.pathname, basePath);
  if (path === undefined) return notTaken(404, "there is nothing here", `the routes begin with ${basePath}/`);
  const caller = await options.authenticate(request);
  if (caller instanceof Response) return caller;
  checkCaller(caller);
  if (rateLimit !== undefined && (await rateLimit.call(options, caller, request)) !== true) {
    return refused(new LockgateError("BUSY", "too many requests", { hint: "wait a little and try again" }));
  }
  const body = await bodyOf(request, maxBodyBytes);
  const sender: Sender = { caller, session: sessionOf(caller, path, url, body), basePath };
  return passOn(request, { url: `https://object/${path}${url.search}`, sender, body, options });
}

/** The path below the base, without the slash before it. */
function below(path: string, base: string): string | undefined {
  const root = base.replace(/\/+$/, "");
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1).replace(/\/+$/, "") : undefined;
}

function checkCaller(caller: unknown): asserts caller is Caller {
  const { userId } = (caller ?? {}) as Partial<Caller>;
  if (userId === null) return;
  if (typeof userId !== "string" || userId === "" || /\p{Surrogate}/u.test(userId)) {
    const hint = "authenticate answers with { userId }: text, or null for an anonymous visitor; or with a Response";
    throw new LockgateError("ID_INVALID", "authenticate did not say who asks", { hint });
  }
}

/** The body, if there is one and it is not too large. */
async function bodyOf(request: Request, maxBytes: number): Promise<Uint8Array | undefined> {
  if (request.body === null) return undefined;
  const reader = request.body.getReader();
  const pieces: Uint8Array[] = [];
  let n_bytes = 0;
  // Somewhat more is read and thrown away: whoever is cut off while sending does not hear why.
  while (n_bytes <= maxBytes * PATIENCE) {
    const { done, value } = await reader.read();
    if (done && n_bytes <= maxBytes) return joined(pieces, n_bytes);
    if (done) break;
    n_bytes += value.length;
    if (n_bytes <= maxBytes) pieces.push(value);
  }
  await reader.cancel().catch(() => {});
  throw new LockgateError("STATE_TOO_LARGE", `the body has more than ${maxBytes} bytes`, { hint: "send less, or a link to it; maxBodyBytes is the limit" });
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** Nobody knows which sessions of visitors without a name belong together, so each has an object of its own. */
function sessionOf(caller: Caller, path: string, url: URL, body: Uint8Array | undefined): string | null {
  if (caller.userId !== null) return null;
  const [kind, id] = path.split("/");
  const named = (kind === "sessions" || kind === "chat") && id !== undefined ? decoded(id) : (url.searchParams.get("sessionId") ?? chatIn(kind, body));
  if (typeof named === "string" && named !== "" && !/\p{Surrogate}/u.test(named)) return named;
  const hint = "an anonymous visitor names a session; whoever wants a list of sessions, files or a search over all has to be somebody";
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

export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new LockgateError("ID_INVALID", "the address is not well-formed", { hint: "encodeURIComponent(sessionId)" });
  }
}

/** Hands the request to the object, without cookies, keys or anything else that is none of its business. */
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
