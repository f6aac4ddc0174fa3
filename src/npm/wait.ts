// What Rust waits for: promises and timers. Nothing of the wasm runs when they come; the task that asked is woken.

/** A promise that a task waits for. */
export class Wait {
  value: unknown;
  #state = 0;
  #task = 0;

  constructor(promise: Promise<unknown>, wake: (task: number) => void) {
    const end = (state: number, value: unknown): void => {
      this.value = value;
      this.#state = state;
      wake(this.#task);
    };
    promise.then(
      (value) => end(1, value),
      (error: unknown) => end(2, error),
    );
  }

  /** Whether it has come (1) or failed (2); if it has not yet (0), it will wake this task. */
  poll(task: number): number {
    this.#task = task;
    return this.#state;
  }
}

/** A timer that a task waits for. It is among the others of its instance until it is over: a crash clears them. */
export class Timer {
  readonly #all: Set<Timer>;
  readonly #timer: ReturnType<typeof setTimeout>;
  #state = 0;
  #task = 0;

  constructor(ms: number, wake: (task: number) => void, all: Set<Timer>) {
    this.#all = all;
    all.add(this);
    this.#timer = setTimeout(() => {
      this.#state = 1;
      all.delete(this);
      wake(this.#task);
    }, ms);
  }

  poll(task: number): number {
    this.#task = task;
    return this.#state;
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#all.delete(this);
  }
}
