// Who sends a request to an object: said by `handle`, in a header that no client can set.

import { LockgateError } from "../errors.js";
import type { Caller } from "./handle.js";

export interface Sender {
  readonly caller: Caller;
  /** The one session of this object, if it is an anonymous visitor's. */
  readonly session: string | null;
  /** What stands before the routes, as clients see them. */
  readonly basePath: string;
}

/** `handle` makes the object's request anew, so nothing of this name comes from outside. */
export const CALLER = "x-lockgate-caller";

export function toHeader({ caller: { userId, attributes }, session, basePath }: Sender): string {
  return encodeURIComponent(JSON.stringify({ caller: { userId, attributes }, session, basePath }));
}

export function senderOf(request: Request): Sender {
  const header = request.headers.get(CALLER);
  if (header !== null) return JSON.parse(decodeURIComponent(header)) as Sender;
  throw new LockgateError("OPTIONS", "nobody says who asks", { hint: "requests come to the object through handle(request, { objects, authenticate })" });
}
