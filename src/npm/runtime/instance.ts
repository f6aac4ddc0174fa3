// One instance of the wasm: polls its tasks, notices a crash, and ends the instance when it is too large.

import type { Core, CoreObject, CoreTask, Instantiate } from "../core.js";
import { LockgateError, fromCore, isCoreError } from "../errors.js";
import { emptied, guarded } from "./guard.js";
import type { Exports } from "./guard.js";
import { life } from "./lifecycle.js";
import { Wait } from "./wait.js";
import type { Wasm } from "./wasm.js";

/** A task in wasm that is polled until it has ended. */
export interface Pollable {
  /** Continues the task. Returns true when it has ended. Whatever it throws is a crash. */
  poll(): boolean;
  /** Called when the instance has crashed. */
  crashed(error: LockgateError): void;
}

interface Open {
  readonly pollable: Pollable;
  /** Set if the task has its own timer. */
  readonly watchdog: Watchdog | undefined;
}

type Watchdog = ReturnType<typeof setInterval>;

/** How often all open tasks are polled, even if they were not woken. */
const LOOK_AGAIN_MS = 30_000;

/**
 * One instance of the wasm. Rust makes no promises: this class polls Rust inside a `try`, so that every trap is noticed
 * and all open calls can be rejected. After a trap the instance is not used again.
 */
export class Instance {
  alive = true;
  readonly core: Core;
  /** How many tasks this instance has started. */
  nTasks = 0;
  readonly #exports: Exports & { readonly memory?: WebAssembly.Memory };
  readonly #onIdle: (instance: Instance) => void;
  readonly #open = new Map<number, Open>();
  readonly #woken = new Set<number>();
  readonly #sleepers = new Map<number, () => void>();
  readonly #objects = new Owned();
  readonly #cleanups = new Set<() => void>();
  #watchdog: Watchdog | undefined;
  #place = "";
  /** What ended this instance: the first trap, or the reason why it was ended. */
  #cause: unknown;

  constructor(instantiate: Instantiate, wasm: Wasm, onIdle: (instance: Instance) => void) {
    this.#onIdle = onIdle;
    const guard = { trapped: (error: unknown) => void this.#crash(error), isAlive: () => this.alive };
    this.core = instantiate((exports) => guarded(exports, guard), () => this.#complete(wasm));
    this.#exports = this.core.initSync({ module: wasm.module });
    life.follow();
    const wake = (task: number): void => this.wake(task);
    this.core.install({
      wake,
      report: (place) => {
        this.#place = place;
      },
      thawed: () => life.thawed(),
      wait: (promise) => {
        const wait = new Wait(wake);
        promise.then((value) => wait.end(1, value), (error: unknown) => wait.end(2, error));
        return wait;
      },
      sleep: (ms) => {
        const wait = new Wait(wake);
        const timer = setTimeout(() => {
          forget();
          wait.end(1);
        }, ms);
        const forget = this.onCrash(() => clearTimeout(timer));
        wait.cancel = () => {
          clearTimeout(timer);
          forget();
        };
        return wait;
      },
    });
  }

  /** Calls `cleanup` if this instance crashes or has crashed. The returned function cancels that. */
  onCrash(cleanup: () => void): () => void {
    // After a trap that a callback has hidden, code that uses this instance can still run for a while.
    if (!this.alive) cleanup();
    this.#cleanups.add(cleanup);
    return () => void this.#cleanups.delete(cleanup);
  }

  /** The size of the wasm memory in bytes. */
  get bytes(): number {
    return this.#exports.memory?.buffer.byteLength ?? 0;
  }

  /** Ends this instance, if no task is open and it holds no unsaved data. The next use starts a new instance. */
  retire(): boolean {
    if (!this.alive || this.#open.size > 0 || this.#cleanups.size > 0) return false;
    if (this.#objects.areNeeded()) return false;
    this.#objects.free();
    this.alive = false;
    this.#cause = new Error("ended, because it was idle and too large");
    this.#release();
    return true;
  }

  /** All calls into the wasm use this method. */
  enter<T>(work: () => T): T {
    if (!this.alive) throw this.#crash(undefined);
    try {
      return work();
    } catch (error) {
      if (isCoreError(error)) throw fromCore(error);
      // An error of ours that has passed through the wasm is a trap like any other.
      if (LockgateError.isInstance(error) && (this.alive || error.code === "ENGINE_CRASHED")) throw error;
      throw this.#crash(error);
    }
  }

  /** Registers an object in wasm memory, so that a crash releases it. */
  own<T extends CoreObject>(object: T): T {
    this.#objects.add(object);
    return object;
  }

  /** The same for an object that is freed when its task has ended. */
  hold<T extends CoreObject>(object: T): T {
    this.#objects.hold(object);
    return object;
  }

  /** Frees an object in wasm memory. */
  free(object: CoreObject): void {
    if (this.#objects.delete(object) && this.alive) this.enter(() => object.free());
  }

  /** Polls a task until it has ended: soon, and each time it is woken. */
  drive(number: number, pollable: Pollable): void {
    this.nTasks += 1;
    this.#open.set(number, { pollable, watchdog: this.#watch(number) });
    void this.#follow(number, pollable);
  }

  /**
   * A task whose wake-up was lost would wait forever, so all open tasks are polled again from time to time. In Node one
   * timer serves all tasks. In an edge worker a timer belongs to a request, so each task has its own.
   */
  #watch(number: number): Watchdog | undefined {
    if (this.#watchdog !== undefined) return undefined;
    const watchdog = setInterval(() => {
      for (const task of this.#watchdog === undefined ? [number] : [...this.#open.keys()]) this.wake(task);
    }, LOOK_AGAIN_MS);
    if (typeof watchdog !== "object") return watchdog;
    watchdog.unref();
    this.#watchdog = watchdog;
    return undefined;
  }

  /** Starts a task and returns its result. */
  run(begin: () => CoreTask): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const task = this.hold(this.enter(begin));
      this.drive(task.number, {
        poll: () => {
          let answer: unknown;
          try {
            answer = task.poll();
          } catch (error) {
            if (!isCoreError(error)) throw error;
            reject(fromCore(error));
            this.free(task);
            return true;
          }
          if (answer === undefined) return false;
          resolve(answer);
          this.free(task);
          return true;
        },
        crashed: reject,
      });
    });
  }

  /** Records that a task can continue. */
  wake(task: number): void {
    const resume = this.#sleepers.get(task);
    this.#sleepers.delete(task);
    if (resume !== undefined) resume();
    else if (this.#open.has(task)) this.#woken.add(task);
  }

  /** Each task continues in its own chain of promises, because an edge worker uses them to keep requests apart. */
  async #follow(number: number, pollable: Pollable): Promise<void> {
    await null;
    while (this.alive && this.#open.has(number)) {
      this.#woken.delete(number);
      try {
        if (pollable.poll()) this.#close(number);
      } catch (error) {
        this.#crash(error);
        return;
      }
      if (this.#woken.has(number)) await null;
      else if (this.#open.has(number)) await new Promise<void>((resolve) => this.#sleepers.set(number, resolve));
    }
    this.#woken.delete(number);
  }

  #close(number: number): void {
    clearInterval(this.#open.get(number)?.watchdog);
    this.#open.delete(number);
    if (this.#open.size === 0) this.#onIdle(this);
  }

  /** Adds the second part of the wasm while code that needs it runs. If that fails, this code cannot continue. */
  #complete(wasm: Wasm): void {
    try {
      this.core.complete(wasm.rest());
    } catch (cause) {
      throw this.#crash(cause);
    }
  }

  /** Rejects all open tasks. The instance is not used again. */
  #crash(cause: unknown): LockgateError {
    this.#cause ??= cause ?? new Error(`something threw ${String(cause)} in the engine`);
    const place = this.#place === "" ? "" : ` at ${this.#place}`;
    const message = `the engine crashed${place}${kindOf(this.#cause)} and was restarted`;
    const hint = "try again: accepted messages are stored; please report the stack of the cause";
    const error = new LockgateError("ENGINE_CRASHED", message, { hint, cause: this.#cause });
    if (!this.alive) return error;
    this.alive = false;
    this.#objects.letGo();
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { pollable, watchdog } of open) {
      clearInterval(watchdog);
      pollable.crashed(error);
    }
    for (const cleanup of this.#cleanups) cleanup();
    this.#cleanups.clear();
    this.#release();
    return error;
  }

  /** Releases the memory, even if some code still holds an object of this instance. */
  #release(): void {
    clearInterval(this.#watchdog);
    emptied(this.#exports);
    this.core.release();
  }
}

/**
 * What kind of exception it was, for messages that are logged without their cause. The words of a trap are those of the
 * browser; those of another exception may contain text of a user.
 */
function kindOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const isTrap = typeof WebAssembly.RuntimeError === "function" && cause instanceof WebAssembly.RuntimeError;
  return isTrap ? ` (${cause.name}: ${cause.message.slice(0, 200)})` : ` (${cause.name})`;
}

/**
 * The objects of an instance that are still in use. Tasks are held until they have ended. Other objects are held
 * weakly: the glue frees an agent that no code holds.
 */
class Owned {
  readonly #held = new Set<CoreObject>();
  readonly #refs = new Set<{ deref(): CoreObject | undefined }>();
  readonly #known = new WeakMap<CoreObject, { deref(): CoreObject | undefined }>();
  #swept = 64;

  add(object: CoreObject): void {
    const ref = typeof WeakRef === "undefined" ? { deref: () => object } : new WeakRef(object);
    this.#known.set(object, ref);
    this.#refs.add(ref);
    if (this.#refs.size > this.#swept) this.#sweep();
  }

  hold(object: CoreObject): void {
    this.#held.add(object);
  }

  delete(object: CoreObject): boolean {
    if (this.#held.delete(object)) return true;
    const ref = this.#known.get(object);
    return ref !== undefined && this.#refs.delete(ref);
  }

  /** Whether one of the objects holds unsaved data. */
  areNeeded(): boolean {
    return [...this.#refs].some((ref) => ref.deref()?.isNeeded?.() === true);
  }

  free(): void {
    for (const ref of this.#refs) ref.deref()?.free();
    this.#refs.clear();
  }

  /** After a crash: without this a finaliser could run code of the dead instance later. */
  letGo(): void {
    for (const object of this.#held) object.__destroy_into_raw();
    for (const ref of this.#refs) ref.deref()?.__destroy_into_raw();
    this.#held.clear();
    this.#refs.clear();
  }

  #sweep(): void {
    for (const ref of this.#refs) if (ref.deref() === undefined) this.#refs.delete(ref);
    this.#swept = 64 + 2 * this.#refs.size;
  }
}
