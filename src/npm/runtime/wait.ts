// A promise or a timer that Rust waits for. Its end runs no wasm code: it only wakes the task that waits.

import type { JsWait } from "../glue.js";

export class Wait implements JsWait {
  value: unknown;
  /** Cancels a timer. A promise cannot be cancelled. */
  cancel: () => void = () => {};
  readonly #wake: (task: number) => void;
  #state = 0;
  #task = 0;

  constructor(wake: (task: number) => void) {
    this.#wake = wake;
  }

  /** Ends the wait: the promise was resolved (1) or rejected (2). */
  end(state: number, value?: unknown): void {
    this.#state = state;
    this.value = value;
    this.#wake(this.#task);
  }

  /** The state; if it is 0, `task` is woken when the wait ends. */
  poll(task: number): number {
    this.#task = task;
    return this.#state;
  }
}
