// The sender of a request to an object. `handle` puts it into a header that no client can set.

import { LockgateError } from "../errors.js";
import type { Caller } from "./handle.js";

/** The sender of a request, and what the object needs from its URL. */
export interface Sender {
  /** What `authenticate` returned. */
  readonly caller: Caller;
  /** The only session of the object, if it belongs to an anonymous visitor. */
  readonly session: string | null;
  /** The path before the routes, in the URLs of clients. */
  readonly basePath: string;
  /** What the object may hold for its clients, in bytes. Absent: the default. */
  readonly maxHeldBytes?: number | undefined;
}

/** `handle` creates a new request for the object, so a header of this name never comes from a client. */
export const CALLER = "x-lockgate-caller";

/** The sender as the text of the header. */
export function toHeader({ caller: { userId, attributes, rights }, session, basePath, maxHeldBytes }: Sender): string {
  return encodeURIComponent(JSON.stringify({ caller: { userId, attributes, rights }, session, basePath, maxHeldBytes }));
}

/** The sender in the header of a request. Throws OPTIONS if there is none. */
export function senderOf(request: Request): Sender {
  const header = request.headers.get(CALLER);
  if (header !== null) return JSON.parse(decodeURIComponent(header)) as Sender;
  throw new LockgateError("OPTIONS", "the request has no caller", { hint: "requests come to the object through handle(request, { objects, authenticate })" });
}
