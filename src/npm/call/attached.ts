// Calls that a reader has attached to. When the reader leaves, the call runs on.

import { LockgateError, fromCore } from "../errors.js";
import { EventBuffer, streamOf } from "./event-buffer.js";
import { respond } from "../protocol/response.js";
import type { Protocol, ResponseOptions } from "../protocol/response.js";
import type { AgentEvent, Call, Input, Reply, Slot } from "../types.js";

/** What an `AttachedCall` is made from. */
export interface AttachedCallSetup {
  readonly id: string;
  readonly slot: Slot;
  readonly feed: EventBuffer;
  readonly result: Promise<Reply>;
  /** The number of the first event that the reader gets. */
  readonly from: number;
  readonly stop: (message?: Input) => void;
  /** Called when the reader leaves. */
  readonly onLeave: () => void;
}

/** A second reader of a call. */
export class AttachedCall implements Call {
  readonly id: string;
  readonly slot: Slot;
  readonly result: Promise<Reply>;
  readonly #setup: AttachedCallSetup;
  #hasReader = false;

  constructor(setup: AttachedCallSetup) {
    this.id = setup.id;
    this.slot = setup.slot;
    this.result = setup.result;
    this.#setup = setup;
    this.result.catch(() => {});
  }

  stop(message?: Input): void {
    this.#setup.stop(message);
  }

  /** Does nothing: the call runs on in any case. */
  detach(): void {}

  toReadableStream(): ReadableStream<AgentEvent> {
    return streamOf(this[Symbol.asyncIterator]());
  }

  toResponse(protocol?: Protocol, init?: ResponseOptions): Response {
    return respond(this, protocol, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#hasReader) throw new LockgateError("INPUT_INVALID", "this call has a reader already", { hint: "use attach for another reader" });
    this.#hasReader = true;
    return this.#setup.feed.read(this.#setup.from, async () => this.#setup.onLeave());
  }
}

/** A call that runs in another tab or on a server, rebuilt here from its events. */
export class EventReplay {
  readonly feed = new EventBuffer();
  readonly result: Promise<Reply>;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: LockgateError) => void;
  #ended = false;

  constructor() {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.result.catch(() => {});
  }

  get over(): boolean {
    return this.#ended;
  }

  /** Adds the next event. An event that was added before is ignored. */
  take(event: AgentEvent): void {
    if (this.#ended || event.seq !== this.feed.length) return;
    this.feed.add({ ...event });
    this.feed.since(event.seq);
    this.feed.notify();
    if (event.type === "call-end") this.#end(() => this.#resolve(event.reply));
    if (event.type === "error") this.fail(fromCore(event.error, { slot: event.slot, callId: event.callId, partial: event.error.partial }));
  }

  /** Goes on with the event `seq`, because the events before it are lost. */
  skipTo(seq: number): void {
    this.feed.skipTo(seq);
  }

  fail(error: LockgateError): void {
    this.#end(() => this.#reject(error), error);
  }

  #end(settle: () => void, error?: LockgateError): void {
    if (this.#ended) return;
    this.#ended = true;
    settle();
    this.feed.end(error);
  }
}
