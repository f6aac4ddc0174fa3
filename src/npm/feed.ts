// The events of one call, for any number of readers.

import type { LockgateError } from "./errors.js";
import type { AgentEvent } from "./types.js";

/** An event before it has its place among the others. */
export type Unplaced = Omit<AgentEvent, "seq"> & Partial<Delta>;

interface Delta {
  delta: string;
  readonly id: string;
  readonly toolCallId: string;
}

/**
 * What was seen of a call, in order. A delta that nobody has had yet takes in the next one of its block, so what waits
 * is bounded by what was said; an event that somebody has had stays as it is, so that all readers count alike.
 */
export class Feed {
  readonly #events: AgentEvent[] = [];
  readonly #waiting = new Set<() => void>();
  #had = 0;
  #over = false;
  #error: LockgateError | undefined;

  /** Adds an event; readers hear of it with the next `tell`. */
  add(event: Unplaced): void {
    const last = this.#events.at(-1) as (AgentEvent & Partial<Delta>) | undefined;
    const goesOn = last !== undefined && this.#events.length > this.#had && isSameDelta(last, event);
    if (goesOn) last.delta += event.delta!;
    else this.#events.push(Object.assign(event, { seq: this.#events.length }) as unknown as AgentEvent);
  }

  /** Wakes those who wait. */
  tell(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** No more events; after the last one, readers meet the error. */
  end(error?: LockgateError): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    this.tell();
  }

  /** The events from a place on that are there now. */
  since(place: number): readonly AgentEvent[] {
    this.#had = Math.max(this.#had, this.#events.length);
    return this.#events.slice(place);
  }

  /** The kind of the last event. */
  get last(): string | undefined {
    return this.#events.at(-1)?.type;
  }

  get length(): number {
    return this.#events.length;
  }

  /** Reads from a place on, to the end; `leave` is done when the reader goes before that. */
  read(place: number, leave: () => Promise<void>): AsyncIterator<AgentEvent, undefined> {
    let next = place;
    return {
      next: async () => {
        while (next >= this.#events.length && !this.#over) {
          await new Promise<void>((resolve) => this.#waiting.add(resolve));
        }
        const event = this.#events[next];
        if (event === undefined) {
          if (this.#error !== undefined) throw this.#error;
          return { done: true, value: undefined };
        }
        next += 1;
        this.#had = Math.max(this.#had, next);
        return { done: false, value: event };
      },
      return: async () => {
        await leave();
        return { done: true, value: undefined };
      },
    };
  }
}

/** The same as a stream; cancelling it is leaving. */
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

function isSameDelta(last: Partial<Delta> & { readonly type: string }, next: Unplaced): boolean {
  return next.delta !== undefined && last.type === next.type && last.id === next.id && last.toolCallId === next.toolCallId;
}
