// The events of one call, for any number of readers.

import type { LockgateError } from "../errors.js";
import type { AgentEvent } from "../types.js";

/** An event before it has its number. */
export type UnnumberedEvent = Omit<AgentEvent, "seq"> & Partial<Delta>;

interface Delta {
  delta: string;
  readonly id: string;
  readonly toolCallId: string;
}

/**
 * The events of a call, in order. Text deltas of one block are joined while no reader has read them, so the buffer is at most
 * as long as the answer. An event that a reader has read is never changed, so all readers see the same numbers.
 */
export class EventBuffer {
  readonly #events: AgentEvent[] = [];
  readonly #waiting = new Set<() => void>();
  /** The number of the first event that is kept. */
  #start = 0;
  #lastType: string | undefined;
  #nRead = 0;
  #ended = false;
  #error: LockgateError | undefined;

  /** Adds an event. Readers get it after the next `notify`. */
  add(event: UnnumberedEvent): void {
    const last = this.#events.at(-1) as (AgentEvent & Partial<Delta>) | undefined;
    const joins = last !== undefined && this.length > this.#nRead && isSameDelta(last, event);
    if (joins) last.delta += event.delta!;
    else this.#events.push(Object.assign(event, { seq: this.length }) as unknown as AgentEvent);
    this.#lastType = event.type;
  }

  /** Wakes the readers that wait. */
  notify(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Ends the buffer. With an error, readers get it after the last event. */
  end(error?: LockgateError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.notify();
  }

  /** The events so far, from the number `seq` on. */
  since(seq: number): readonly AgentEvent[] {
    this.#nRead = Math.max(this.#nRead, this.length);
    return this.#events.slice(Math.max(0, seq - this.#start));
  }

  /** Drops the events before the number `seq`. A reader that has not read them continues with the first event that is left. */
  forget(seq: number): void {
    this.#start += this.#events.splice(0, seq - this.#start).length;
  }

  /** Goes on with the event `seq`, because the events before it are lost. */
  skipTo(seq: number): void {
    this.forget(this.length);
    this.#start = Math.max(this.#start, seq);
  }

  /** The type of the last event. */
  get last(): string | undefined {
    return this.#lastType;
  }

  /** The number of events so far, with those that were dropped. */
  get length(): number {
    return this.#start + this.#events.length;
  }

  /** Reads from the number `seq` to the end. `leave` runs if the reader stops before that. */
  read(seq: number, leave: () => Promise<void>): AsyncIterator<AgentEvent, undefined> {
    let next = seq;
    return {
      next: async () => {
        while (next >= this.length && !this.#ended) {
          await new Promise<void>((resolve) => this.#waiting.add(resolve));
        }
        next = Math.max(next, this.#start);
        const event = this.#events[next - this.#start];
        if (event === undefined) {
          if (this.#error !== undefined) throw this.#error;
          return { done: true, value: undefined };
        }
        next += 1;
        this.#nRead = Math.max(this.#nRead, next);
        return { done: false, value: event };
      },
      return: async () => {
        await leave();
        return { done: true, value: undefined };
      },
    };
  }
}

/** The iterator as a stream. Cancelling the stream calls the iterator's `return`. */
export function streamOf<T>(items: AsyncIterator<T, undefined>): ReadableStream<T> {
  return new ReadableStream<T>({
    async pull(controller) {
      const next = await items.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await items.return?.();
    },
  });
}

function isSameDelta(last: Partial<Delta> & { readonly type: string }, next: UnnumberedEvent): boolean {
  return next.delta !== undefined && last.delta !== undefined && last.type === next.type && last.id === next.id && last.toolCallId === next.toolCallId;
}
