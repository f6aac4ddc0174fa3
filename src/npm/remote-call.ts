// A call that runs in a worker: its events come over a connection that may break, and is made again where it broke.

import { LockgateError } from "./errors.js";
import { streamOf } from "./feed.js";
import { Elsewhere, Followed } from "./followed.js";
import type { Wire } from "./remote-wire.js";
import { respond } from "./respond.js";
import type { Protocol, ResponseOptions } from "./respond.js";
import { jsonSchema, validated } from "./schema.js";
import { framesOf } from "./sse-read.js";
import type { AgentEvent, Call, CallOptions, Input, Reply, Schema, Slot } from "./types.js";
import type { StreamName } from "./wire.js";

/** How often a connection is made again before it is given up, and how long is waited between, at most. */
const ATTEMPTS = 12;
const WAIT_MS = 3_000;

export interface RemoteSetup {
  readonly wire: Wire;
  readonly name: StreamName;
  readonly slot: Slot;
  readonly body: Readonly<Record<string, unknown>>;
  readonly options: CallOptions;
}

/** One call. It has its own id, so that the worker knows it again: asked twice, it runs once. */
export class RemoteCall implements Call {
  readonly id: string;
  readonly slot: Slot;
  readonly result: Promise<Reply>;
  readonly #setup: RemoteSetup;
  readonly #seen = new Elsewhere();
  #taken = false;
  #detached = false;
  #begun = false;

  constructor(setup: RemoteSetup) {
    this.#setup = setup;
    this.slot = setup.slot;
    this.id = setup.options.callId ?? crypto.randomUUID();
    this.result = this.#seen.result.then((reply) => this.#checked(reply));
    this.result.catch(() => {});
  }

  /** Runs when those before it have their place; resolves when it has its own. */
  begin(before: Promise<void>): Promise<void> {
    return new Promise((placed) => {
      const { signal } = this.#setup.options;
      const abort = (): void => this.stop();
      signal?.addEventListener("abort", abort, { once: true });
      const end = (): void => (signal?.removeEventListener("abort", abort), placed());
      this.result.then(end, end);
      void before.then(() => this.#run(placed)).catch((error: unknown) => this.#seen.fail(error as LockgateError));
    });
  }

  async refuse(error: LockgateError): Promise<void> {
    this.#seen.fail(error);
  }

  stop(message?: Input): void {
    const { wire, slot } = this.#setup;
    if (this.#seen.over) return;
    // One that has not been sent yet is simply not sent.
    if (!this.#begun) return this.#seen.fail(this.#aborted());
    void wire.ask("interrupt", slot, { callId: this.id, message }).catch(() => {});
  }

  detach(): void {
    this.#detached = true;
  }

  toReadableStream(): ReadableStream<AgentEvent> {
    return streamOf(this[Symbol.asyncIterator]());
  }

  toResponse(protocol?: Protocol, init?: ResponseOptions): Response {
    return respond(this, protocol, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#taken) throw new LockgateError("INPUT_INVALID", "this call is being read already", { hint: "a call has one reader; attach for more" });
    this.#taken = true;
    return this.#seen.feed.read(0, async () => {
      if (this.#detached) return;
      this.stop();
      await this.result.catch(() => {});
    });
  }

  async #run(placed: () => void): Promise<void> {
    if (this.#seen.over) return;
    this.#begun = true;
    const connect = new Connection(this.#setup.wire, this.slot, this.id, this.#seen);
    await connect.read(() => this.#send(), placed);
  }

  #send(): Promise<Response> {
    const { wire, name, slot, body, options } = this.#setup;
    const { overlap, generate, outputSchema } = options;
    const schema = outputSchema === undefined ? undefined : jsonSchema(outputSchema as Schema, "the output");
    return wire.send({ name, slot, args: { ...body, callId: this.id, overlap, generate, outputSchema: schema }, accept: "text/event-stream" });
  }

  /** A signal that fired makes it ABORTED, whatever came of it; a schema of the caller's has the last word on the output. */
  async #checked(reply: Reply): Promise<Reply> {
    const { signal, outputSchema } = this.#setup.options;
    if (signal?.aborted === true) throw this.#aborted(reply);
    if (outputSchema === undefined || reply.output === undefined) return reply;
    try {
      return { ...reply, output: await validated(outputSchema as Schema, reply.output) };
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new LockgateError("OUTPUT_INVALID", message, { slot: this.slot, callId: this.id, partial: reply.message, hint: "the turn is stored; ask for a simpler form", cause });
    }
  }

  #aborted(reply?: Reply): LockgateError {
    const { signal } = this.#setup.options;
    return new LockgateError("ABORTED", "the call was aborted", { slot: this.slot, callId: this.id, partial: reply?.message, cause: signal?.reason });
  }
}

/** Reads a call to its end over as many connections as it takes. */
class Connection {
  constructor(
    readonly wire: Wire,
    readonly slot: Slot,
    readonly callId: string,
    readonly seen: Elsewhere,
  ) {}

  /** `send` begins the call, or answers with what came of it if it was begun before. */
  async read(send: () => Promise<Response>, placed: () => void): Promise<void> {
    let isKnown = true;
    for (let attempt = 0; !this.seen.over; attempt += 1) {
      const had = this.seen.feed.length;
      const goesOn = had > 0 && isKnown;
      try {
        const response = await (goesOn ? this.#again() : send());
        placed();
        if (response.status !== 204) await this.#take(response);
        // Nothing more of it there: it is over, and asked for once more it answers with what came of it.
        isKnown = this.seen.feed.length > had;
      } catch (error) {
        if (!isBroken(error, this.seen) || attempt >= ATTEMPTS) return this.seen.fail(error as LockgateError);
      }
      // Whoever gets on has a new count of attempts.
      if (this.seen.feed.length > had) attempt = 0;
      if (!this.seen.over && attempt >= ATTEMPTS) return this.seen.fail(lost(this.slot));
      if (!this.seen.over) await pause(Math.min(50 * 2 ** attempt, WAIT_MS));
    }
  }

  #again(): Promise<Response> {
    const args = { callId: this.callId, after: this.seen.feed.length - 1 };
    return this.wire.send({ name: "attach", slot: this.slot, args, accept: "text/event-stream" });
  }

  async #take(response: Response): Promise<void> {
    for await (const { data } of this.#frames(response)) {
      const event = { ...(JSON.parse(data) as AgentEvent), slot: this.slot };
      const isEnd = event.type === "call-end" || event.type === "error";
      // The outcome of a call that was over before may come alone.
      this.seen.take(isEnd ? { ...event, seq: this.seen.feed.length } : event);
    }
  }

  async *#frames(response: Response): AsyncGenerator<{ readonly data: string }> {
    const frames = framesOf(response.body!);
    for (;;) {
      const { done, value } = await this.wire.read(() => frames.next());
      if (done === true) return;
      yield value;
    }
  }
}

function lost(slot: Slot): LockgateError {
  return new LockgateError("STORE_UNAVAILABLE", "the worker does not say how the call ended", { hint: "read the session's history", slot });
}

/** Whether trying again may help: nobody answered, or whoever did is busy while the call is under way. */
function isBroken(error: unknown, seen: Elsewhere): boolean {
  return LockgateError.isInstance(error) && (error.code === "STORE_UNAVAILABLE" || (error.code === "BUSY" && seen.feed.length > 0));
}

/** The call that runs in a session, for one more reader; null if none runs. */
export async function following(wire: Wire, slot: Slot, after: number): Promise<Call | null> {
  let response: Response;
  try {
    response = await wire.send({ name: "attach", slot, args: { after: -1 }, accept: "text/event-stream" });
  } catch (error) {
    // A turn that was cut off does not run.
    if (LockgateError.isInstance(error) && error.code === "SUPERSEDED") return null;
    throw error;
  }
  const header = response.headers.get("x-lockgate-call");
  if (response.status === 204 || header === null) return null;
  const id = decodeURIComponent(header);
  const seen = new Elsewhere();
  const connection = new Connection(wire, slot, id, seen);
  const over = new LockgateError("SUPERSEDED", "the call is over, and not within reach any more", { hint: "read the session's history", slot });
  let isFirst = true;
  const open = async (): Promise<Response> => {
    if (!isFirst) throw over;
    isFirst = false;
    return response;
  };
  void connection.read(open, () => {}).catch((error: unknown) => seen.fail(error as LockgateError));
  const stop = (message?: Input): void => void wire.ask("interrupt", slot, { callId: id, message }).catch(() => {});
  return new Followed({ id, slot, feed: seen.feed, result: seen.result, from: after + 1, stop, left: () => {} });
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
