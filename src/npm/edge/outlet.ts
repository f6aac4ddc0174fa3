// The body of a response that holds little, however slowly it is read: small chunks, made only when the reader asks for them.

import { Shared } from "./held.js";
import type { HeldBytes, HeldResponse } from "./held.js";

/** The size of a chunk. */
const CHUNK = 16 * 1024;

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(": keep-alive\n\n");

/** What comes next for a reader: bytes, nothing yet, the end, or a failure. */
export type Next = readonly Shared[] | "later" | "end" | "broken";

/** Where a response gets its bytes from. */
export interface ByteSource {
  /** What comes next. Called again after "later" when `wake` was called. */
  next(): Next;
  /** Called once, with the function that continues a reader that waits. */
  onWake(wake: () => void): void;
  /** Called once, when the response has ended or its reader is gone. `isRead`: it was read to its end. */
  leave(isRead: boolean): void;
}

/** Settings of a body. */
export interface OutletOptions {
  /** How often a comment is sent while there is nothing else; absent: never. */
  readonly heartbeatMs?: number;
  /** Bytes that are sent at once. */
  readonly first?: readonly Shared[];
  /** Whether a response that is cut off must look broken. A stream of events just ends: the reader ignores half an event. */
  readonly isWhole?: boolean;
}

/** One response. */
class Outlet implements HeldResponse {
  stalledSince: number | undefined = Date.now();
  readonly #held: HeldBytes;
  readonly #source: ByteSource;
  readonly #options: OutletOptions;
  readonly #pieces: Shared[];
  /** How much of the first piece is sent. */
  #at = 0;
  #isOver = false;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Ends the pull that waits. */
  #sent: (() => void) | undefined;

  constructor(held: HeldBytes, source: ByteSource, options: OutletOptions) {
    this.#held = held;
    this.#source = source;
    this.#options = options;
    this.#pieces = [...(options.first ?? [])];
    held.open(this, this.#pieces.reduce((sum, { bytes }) => sum + bytes.length, 0));
    this.#pieces.forEach((piece) => held.hold(piece));
    source.onWake(() => {
      if (this.#sent !== undefined && this.#send()) this.#sent?.();
    });
  }

  holds(sessionId?: string): boolean {
    return this.#pieces.some((piece) => sessionId === undefined || piece.sessionId === sessionId);
  }

  body(): ReadableStream<Uint8Array> {
    const source = {
      start: (controller: ReadableStreamDefaultController<Uint8Array>) => void (this.#controller = controller),
      pull: () => this.#pull(),
      cancel: () => this.#end(false),
    };
    return new ReadableStream<Uint8Array>(source, { highWaterMark: 0 });
  }

  cut(): void {
    if (this.#isOver) return;
    this.#end(false);
    if (this.#options.isWhole === true) this.#controller.error(new Error("the response was not read in time"));
    else this.#controller.close();
  }

  #pull(): Promise<void> | undefined {
    if (this.#send()) return undefined;
    this.stalledSince = undefined;
    return new Promise((resolve) => {
      const { heartbeatMs } = this.#options;
      const timer = heartbeatMs === undefined ? undefined : setTimeout(() => (this.#enqueue(HEARTBEAT), this.#sent?.()), heartbeatMs);
      this.#sent = () => {
        clearTimeout(timer);
        this.#sent = undefined;
        resolve();
      };
    });
  }

  /** Sends the next chunk, or the end. False if there is nothing yet. */
  #send(): boolean {
    if (this.#isOver) return true;
    const chunk = new Uint8Array(CHUNK);
    let length = 0;
    let next: Next = [];
    while (length < CHUNK) {
      const piece = this.#pieces[0];
      if (piece === undefined) {
        next = this.#source.next();
        if (typeof next === "string") break;
        for (const each of next) {
          this.#held.hold(each);
          this.#pieces.push(each);
        }
        continue;
      }
      const part = piece.bytes.subarray(this.#at, this.#at + CHUNK - length);
      chunk.set(part, length);
      length += part.length;
      this.#at += part.length;
      if (this.#at >= piece.bytes.length) this.#drop();
    }
    if (length > 0) this.#enqueue(length === CHUNK ? chunk : chunk.slice(0, length));
    if (next === "end" || next === "broken") this.#finish(next);
    return length > 0 || this.#isOver;
  }

  #finish(how: "end" | "broken"): void {
    this.#end(how === "end");
    if (how === "end") this.#controller.close();
    else this.#controller.error(new Error("the answer could not be read to its end"));
  }

  #enqueue(chunk: Uint8Array): void {
    this.stalledSince = Date.now();
    this.#controller.enqueue(chunk);
  }

  #drop(): void {
    this.#at = 0;
    const piece = this.#pieces.shift();
    if (piece !== undefined) this.#held.release(piece);
  }

  #end(isRead: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    while (this.#pieces.length > 0) this.#drop();
    this.#held.close(this);
    this.#source.leave(isRead);
    this.#sent?.();
  }
}

/** The body of a response. Throws BUSY if too much is held already. */
export function outlet(held: HeldBytes, source: ByteSource, options: OutletOptions = {}): ReadableStream<Uint8Array> {
  return new Outlet(held, source, options).body();
}

/** Bytes that only one reader has. */
export function ownBytes(text: string, sessionId?: string): Shared {
  return new Shared("", encoder.encode(text), sessionId);
}

/** A source of nothing: all bytes of the response are its first ones. */
const EMPTY: ByteSource = { next: () => "end", onWake: () => {}, leave: () => {} };

/** A response with this text. While it is not read, its bytes are held. */
export function answerOf(held: HeldBytes, text: string, { sessionId, headers }: { readonly sessionId: string; readonly headers: Record<string, string> }): Response {
  // A short answer goes to the platform at once.
  if (text.length < CHUNK) return new Response(text, { headers });
  return new Response(outlet(held, EMPTY, { first: [ownBytes(text, sessionId)], isWhole: true }), { headers });
}
