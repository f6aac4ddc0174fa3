// Reads the body of a request: not more than allowed, not longer than allowed, and not too many at once.

import { LockgateError } from "../errors.js";
import { Inbox } from "./held.js";
import { notTaken } from "./reply.js";

/** A body is read up to this many times the limit before the connection is closed. */
const PATIENCE = 4;

/** The limits of a body. */
interface BodyLimits {
  /** The largest body. */
  readonly maxBytes: number;
  /** The most bytes of unfinished bodies of one object. */
  readonly maxHeldBytes: number;
  /** Until the body must have arrived. */
  readonly timeoutMs: number;
}

/** What this worker has received of unfinished bodies. */
const inbox = new Inbox();

/** The body, if there is one; or a response, if it did not arrive in time. `object` is the name of the object that it is for, if that is known. */
export async function bodyOf(request: Request, object: string | undefined, limits: BodyLimits): Promise<Uint8Array | undefined | Response> {
  if (request.bodyUsed || request.body?.locked === true) {
    throw new LockgateError("INPUT_INVALID", "the body was read before", { hint: "authenticate and rateLimit may read only request.clone()" });
  }
  if (request.body === null) return undefined;
  const reader = request.body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => (timer = setTimeout(resolve, limits.timeoutMs, "late")));
  const place = inbox.enter(object, limits.maxHeldBytes);
  try {
    const body = await read(async () => Promise.race([reader.read(), late]), (n_bytes) => place.take(n_bytes), limits.maxBytes);
    if (body !== "late" && body !== "large") return body;
    void reader.cancel().catch(() => {});
    if (body === "late") return notTaken(408, "the body did not arrive in time", `send it within ${limits.timeoutMs} ms; bodyTimeoutMs sets the limit`, "TIMEOUT");
    throw new LockgateError("STATE_TOO_LARGE", `the body has more than ${limits.maxBytes} bytes`, { hint: "send a smaller body, or a link to the content; maxBodyBytes sets the limit" });
  } catch (error) {
    void reader.cancel().catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
    place.leave();
  }
}

type Part = "late" | { readonly done: boolean; readonly value?: Uint8Array | undefined };

async function read(next: () => Promise<Part>, take: (n_bytes: number) => void, maxBytes: number): Promise<Uint8Array | "late" | "large"> {
  const pieces: Uint8Array[] = [];
  let n_bytes = 0;
  // Bytes over the limit are read and dropped for a while: if the connection is closed while the client sends, it does not get the error.
  while (n_bytes <= maxBytes * PATIENCE) {
    const part = await next();
    if (part === "late") return part;
    if (part.done || part.value === undefined) return n_bytes <= maxBytes ? joined(pieces, n_bytes) : "large";
    n_bytes += part.value.length;
    if (n_bytes > maxBytes) pieces.length = 0;
    else {
      take(part.value.length);
      pieces.push(part.value);
    }
  }
  return "large";
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
