// A call that runs in a worker. If the connection for its events breaks, it reconnects and continues after the last event.

import { LockgateError } from "../errors.js";
import { streamOf } from "../call/event-buffer.js";
import { EventReplay, AttachedCall } from "../call/attached.js";
import type { Wire } from "./requests.js";
import { respond } from "../protocol/response.js";
import type { Protocol, ResponseOptions } from "../protocol/response.js";
import { jsonSchema, validated } from "../values/schema.js";
import { framesOf } from "../protocol/sse-read.js";
import type { AgentEvent, Call, CallOptions, Input, Reply, Schema, Slot } from "../types.js";
import type { StreamName } from "../protocol/methods.js";
import { missedIn } from "../protocol/wire.js";

/** The most reconnects without a new event, and the longest wait between two of them. */
const ATTEMPTS = 12;
const WAIT_MS = 3_000;

/** What a `RemoteCall` is made from. */
export interface RemoteSetup {
  /** The connection to the worker. */
  readonly wire: Wire;
  /** The route that begins the call. */
  readonly name: StreamName;
  /** The session of the call. */
  readonly slot: Slot;
  /** The members of the request besides the options of the call. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The options of the call. */
  readonly options: CallOptions;
}

/** One call. It always has an id, so that the worker recognises it: a request that is sent twice runs once. */
export class RemoteCall implements Call {
  readonly id: string;
  readonly slot: Slot;
  readonly result: Promise<Reply>;
  readonly #setup: RemoteSetup;
  readonly #seen = new EventReplay();
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

  /** Sends the call after `before`. Resolves when the call has its place in the queue of the worker. */
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

  /** Ends the call with an error before it is sent. */
  async refuse(error: LockgateError): Promise<void> {
    this.#seen.fail(error);
  }

  stop(message?: Input): void {
    const { wire, slot } = this.#setup;
    if (this.#seen.over) return;
    // A call that was not sent yet is not sent at all.
    if (!this.#begun) return this.#seen.fail(this.#aborted());
    void wire.interrupt(slot, { callId: this.id, message }).catch(() => {});
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
    if (this.#taken) throw new LockgateError("INPUT_INVALID", "this call has a reader already", { hint: "use attach for another reader" });
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

  /** Rejects with ABORTED if the signal fired, whatever the outcome was. Validates the output with the caller's own schema. */
  async #checked(reply: Reply): Promise<Reply> {
    const { signal, outputSchema } = this.#setup.options;
    if (signal?.aborted === true) throw this.#aborted(reply);
    if (outputSchema === undefined || reply.output === undefined) return reply;
    try {
      return { ...reply, output: await validated(outputSchema as Schema, reply.output) };
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new LockgateError("OUTPUT_INVALID", message, { slot: this.slot, callId: this.id, partial: reply.message, hint: "the turn is stored; use a simpler schema", cause });
    }
  }

  #aborted(reply?: Reply): LockgateError {
    const { signal } = this.#setup.options;
    return new LockgateError("ABORTED", "the call was aborted", { slot: this.slot, callId: this.id, partial: reply?.message, cause: signal?.reason });
  }
}

/** Reads the events of a call to its end, over as many connections as needed. */
class Connection {
  constructor(
    readonly wire: Wire,
    readonly slot: Slot,
    readonly callId: string,
    readonly seen: EventReplay,
  ) {}

  /** `send` begins the call, or returns its outcome if the call began before. */
  async read(send: () => Promise<Response>, placed: () => void): Promise<void> {
    let isKnown = true;
    for (let attempt = 0; !this.seen.over; attempt += 1) {
      const had = this.seen.feed.length;
      const goesOn = had > 0 && isKnown;
      try {
        const response = await (goesOn ? this.#again() : send());
        placed();
        if (response.status !== 204) await this.#take(response);
        // Without new events the call has ended: if it is sent again, the worker returns the outcome.
        isKnown = this.seen.feed.length > had;
      } catch (error) {
        const { next, ended } = missedIn(error);
        // The worker does not keep the next events any more: the call goes on with a gap, or is asked for its outcome.
        if (next !== undefined && next > had) this.seen.skipTo(next);
        else if (ended === true && goesOn) isKnown = false;
        else if (!isBroken(error, this.seen) || attempt >= ATTEMPTS) return this.seen.fail(error as LockgateError);
      }
      // A new event resets the count of attempts.
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
      // The outcome of a call that had ended before may come without the events before it.
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
  return new LockgateError("STORE_UNAVAILABLE", "the worker did not report how the call ended", { hint: "read the session's history", slot });
}

/** Whether a reconnect may help: the worker did not answer, or it is busy and the call runs. */
function isBroken(error: unknown, seen: EventReplay): boolean {
  return LockgateError.isInstance(error) && (error.code === "STORE_UNAVAILABLE" || (error.code === "BUSY" && seen.feed.length > 0));
}

/** The running call of a session, for one more reader; null if none runs. */
export async function following(wire: Wire, slot: Slot, after: number): Promise<Call | null> {
  const ask = (from: number): Promise<Response> => wire.send({ name: "attach", slot, args: { after: from - 1 }, accept: "text/event-stream" });
  let response: Response;
  let first = 0;
  try {
    response = await ask(first).catch((error: unknown) => {
      // The worker does not keep the first events any more.
      first = missedIn(error).next ?? 0;
      if (first === 0) throw error;
      return ask(first);
    });
  } catch (error) {
    // A turn that a restart cut off does not run.
    if (LockgateError.isInstance(error) && error.code === "SUPERSEDED") return null;
    throw error;
  }
  const header = response.headers.get("x-lockgate-call");
  if (response.status === 204 || header === null) return null;
  const id = decodeURIComponent(header);
  const seen = new EventReplay();
  seen.skipTo(first);
  const connection = new Connection(wire, slot, id, seen);
  const over = new LockgateError("SUPERSEDED", "the call has ended, and its events are not kept any more", { hint: "read the session's history", slot });
  let isFirst = true;
  const open = async (): Promise<Response> => {
    if (!isFirst) throw over;
    isFirst = false;
    return response;
  };
  void connection.read(open, () => {}).catch((error: unknown) => seen.fail(error as LockgateError));
  const stop = (message?: Input): void => void wire.interrupt(slot, { callId: id, message }).catch(() => {});
  return new AttachedCall({ id, slot, feed: seen.feed, result: seen.result, from: after + 1, stop, onLeave: () => {} });
}

/** Resolves after this time, or earlier if the signal fires. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
