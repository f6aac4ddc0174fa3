// Something that Rust waits for: a promise, or a timer. Nothing of the wasm runs when it comes; the task that asked is woken.

export class Wait {
  value: unknown;
  cancel: (() => void) | undefined;
  readonly #wake: (task: number) => void;
  #state = 0;
  #task = 0;

  constructor(wake: (task: number) => void) {
    this.#wake = wake;
  }

  /** It has come (1) or failed (2). */
  end(state: number, value?: unknown): void {
    this.#state = state;
    this.value = value;
    this.#wake(this.#task);
  }

  /** How it stands; if it has not come yet (0), it will wake this task. */
  poll(task: number): number {
    this.#task = task;
    return this.#state;
  }
}
