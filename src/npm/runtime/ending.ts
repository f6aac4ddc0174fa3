// Saves the running calls of an agent before a signal ends the process.

import type { ExitSignal } from "../values/exit-signals.js";
import type { ExitSignals } from "./process-signals.js";

/** Counts the work that must be saved before the process ends: running calls, and subagents in the background. */
export interface EndGuard {
  /** Some work has begun. */
  begun(): void;
  /** It has ended, and what it leaves is saved. */
  ended(): void;
  /** Set while the process ends. What a call resolves or rejects with then must wait for this promise: code that reads it could end the process in another way. */
  readonly processEnd: Promise<void> | undefined;
}

/** What a guard does with the calls of its agent. */
export interface GuardedCalls {
  /** Takes no new calls and ends those that run: at their next boundary, or now. */
  stop(now: boolean): void;
  /** Stores what is new in the answers of those that run. */
  checkpoint(): void;
}

/** Makes the guard of an agent. */
export type MakeEndGuard = (names: readonly ExitSignal[], calls: GuardedCalls) => EndGuard | undefined;

/** How long calls may go on to their next boundary, such as the end of a tool. Then they are stopped wherever they are. */
const BOUNDARY_MS = 2_000;

/** Guards calls against these signals. */
export function guardedBy(signals: ExitSignals | undefined): MakeEndGuard {
  return (names, calls) => (signals === undefined || names.length === 0 ? undefined : new SignalGuard(signals, names, calls));
}

class SignalGuard implements EndGuard {
  processEnd: Promise<void> | undefined;
  readonly #signals: ExitSignals;
  readonly #names: readonly ExitSignal[];
  readonly #calls: GuardedCalls;
  #nOpen = 0;
  #unwatch = (): void => {};
  #saved = (): void => {};

  constructor(signals: ExitSignals, names: readonly ExitSignal[], calls: GuardedCalls) {
    this.#signals = signals;
    this.#names = names;
    this.#calls = calls;
  }

  begun(): void {
    this.#nOpen += 1;
    if (this.#nOpen > 1) return;
    this.#unwatch = this.#signals.watch(this.#names, { save: (ended) => this.#save(ended), checkpoint: () => this.#calls.checkpoint() });
  }

  ended(): void {
    this.#nOpen -= 1;
    if (this.#nOpen > 0) return;
    this.#unwatch();
    this.#saved();
  }

  async #save(ended: Promise<void>): Promise<void> {
    this.processEnd = ended;
    void ended.then(() => (this.processEnd = undefined));
    const saved = new Promise<void>((resolve) => (this.#saved = resolve));
    this.#calls.stop(false);
    const timer = setTimeout(() => this.#calls.stop(true), BOUNDARY_MS);
    await saved;
    clearTimeout(timer);
  }
}
