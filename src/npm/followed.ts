// A call that somebody follows without having made it: leaving it never stops it.

import { LockgateError, fromCore } from "./errors.js";
import { Feed, streamOf } from "./feed.js";
import { respond } from "./respond.js";
import type { Protocol, ResponseOptions } from "./respond.js";
import type { AgentEvent, Call, Input, Reply, Slot } from "./types.js";

/** What is known of a call that is followed. */
export interface FollowedSetup {
  readonly id: string;
  readonly slot: Slot;
  readonly feed: Feed;
  readonly result: Promise<Reply>;
  /** The first event to show. */
  readonly from: number;
  readonly stop: (message?: Input) => void;
  /** Called when nobody follows any more. */
  readonly left: () => void;
}

export class Followed implements Call {
  readonly id: string;
  readonly slot: Slot;
  readonly result: Promise<Reply>;
  readonly #setup: FollowedSetup;
  #taken = false;

  constructor(setup: FollowedSetup) {
    this.id = setup.id;
    this.slot = setup.slot;
    this.result = setup.result;
    this.#setup = setup;
    this.result.catch(() => {});
  }

  stop(message?: Input): void {
    this.#setup.stop(message);
  }

  /** Nothing changes: leaving does not stop it anyway. */
  detach(): void {}

  toReadableStream(): ReadableStream<AgentEvent> {
    return streamOf(this[Symbol.asyncIterator]());
  }

  toResponse(protocol?: Protocol, init?: ResponseOptions): Response {
    return respond(this, protocol, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    if (this.#taken) throw new LockgateError("INPUT_INVALID", "this call is being read already", { hint: "attach once more for another reader" });
    this.#taken = true;
    return this.#setup.feed.read(this.#setup.from, async () => this.#setup.left());
  }
}

/** A call of another tab, put together again from what that tab shows of it. */
export class Elsewhere {
  readonly feed = new Feed();
  readonly result: Promise<Reply>;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: LockgateError) => void;
  #over = false;

  constructor() {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.result.catch(() => {});
  }

  get over(): boolean {
    return this.#over;
  }

  /** Takes an event in; one that was there already is passed over. */
  take(event: AgentEvent): void {
    if (this.#over || event.seq !== this.feed.length) return;
    this.feed.add({ ...event });
    this.feed.since(event.seq);
    this.feed.tell();
    if (event.type === "call-end") this.#end(() => this.#resolve(event.reply));
    if (event.type === "error") this.fail(fromCore(event.error, { slot: event.slot, callId: event.callId, partial: event.error.partial }));
  }

  fail(error: LockgateError): void {
    this.#end(() => this.#reject(error), error);
  }

  #end(settle: () => void, error?: LockgateError): void {
    if (this.#over) return;
    this.#over = true;
    settle();
    this.feed.end(error);
  }
}
