// Saves running calls when the process is told to end: in Node, and in hosts with the same signals.

import { EXIT_SIGNALS } from "../values/exit-signals.js";
import type { ExitSignal } from "../values/exit-signals.js";

/** What happens with calls when the process is told to end. */
export interface CallSaver {
  /** Saves them. Resolves when they are saved. `ended` never resolves if the process ends, as it should. */
  save(ended: Promise<void>): Promise<void>;
  /** Stores what is new in their answers. They run on, because the host decides what its signal means. */
  checkpoint(): void;
}

/** The signals that end this process. */
export interface ExitSignals {
  /** Saves calls before one of these signals ends the process. The returned function cancels that. */
  watch(names: readonly ExitSignal[], calls: CallSaver): () => void;
}

interface HostProcess {
  readonly pid: number;
  readonly versions: { readonly node?: string };
  prependListener(name: string, listener: (name: string) => void): unknown;
  off(name: string, listener: (name: string) => void): unknown;
  listenerCount(name: string): number;
  kill(pid: number, name: string): unknown;
  exit(code: number): unknown;
}

/** The longest that the process waits for its calls to be saved. */
const SAVE_MS = 5_000;

/** How long a signal without a listener may take to end the process. */
const END_MS = 100;

// Two copies of the package in one process must not take each other's listener for the host's.
const REALM = Symbol.for("lockgate.exit-signals");

/** The signals of this process; undefined where there are none, as in a page or an edge worker. */
export function exitSignals(): ExitSignals | undefined {
  const realm = globalThis as { [REALM]?: ExitSignals; process?: Partial<HostProcess>; navigator?: { userAgent?: string } };
  const host = realm.process;
  // An edge worker may have a `process` that looks like Node's. It gets no signals.
  if (host?.versions?.node === undefined || realm.navigator?.userAgent === "Cloudflare-Workers") return undefined;
  if ([host.prependListener, host.off, host.listenerCount, host.kill, host.exit].some((method) => typeof method !== "function")) return undefined;
  return (realm[REALM] ??= new ProcessSignals(host as HostProcess));
}

/** Has one listener for each signal, for all agents of the process, and none while no agent watches it. */
class ProcessSignals implements ExitSignals {
  readonly #host: HostProcess;
  readonly #watchers = new Map<string, Set<CallSaver>>();
  readonly #listener = (name: string): void => void this.#told(name);
  #ending: { readonly name: string; readonly ended: Promise<void>; readonly saving: Promise<void>[] } | undefined;

  constructor(host: HostProcess) {
    this.#host = host;
  }

  watch(names: readonly ExitSignal[], calls: CallSaver): () => void {
    const ending = this.#ending;
    // The call began while others are saved: it is saved with them.
    if (ending !== undefined) {
      if ((names as readonly string[]).includes(ending.name)) ending.saving.push(calls.save(ending.ended));
      return () => {};
    }
    for (const name of names) {
      const watchers = this.#watchers.get(name) ?? this.#listen(name);
      watchers.add(calls);
    }
    return () => names.forEach((name) => this.#unwatch(name, calls));
  }

  #listen(name: string): Set<CallSaver> {
    const watchers = new Set<CallSaver>();
    this.#watchers.set(name, watchers);
    // Runs before the host's listeners: a `once` listener is not counted any more when it has run.
    this.#host.prependListener(name, this.#listener);
    return watchers;
  }

  #unwatch(name: string, calls: CallSaver): void {
    const watchers = this.#watchers.get(name);
    if (watchers?.delete(calls) !== true || watchers.size > 0) return;
    this.#watchers.delete(name);
    this.#host.off(name, this.#listener);
  }

  /** The process got a signal. If the host has a listener of its own, the host decides what happens. */
  async #told(name: string): Promise<void> {
    if (this.#ending !== undefined) return;
    const watchers = [...(this.#watchers.get(name) ?? [])];
    if (this.#host.listenerCount(name) - 1 > nCleaners()) return watchers.forEach((calls) => calls.checkpoint());
    let release = (): void => {};
    const ended = new Promise<void>((resolve) => (release = resolve));
    const saving: Promise<void>[] = [];
    this.#ending = { name, ended, saving };
    saving.push(...watchers.map((calls) => calls.save(ended)));
    // Keep our listener until all listeners have run: otherwise `signal-exit` would take itself for the last one and end the process.
    await null;
    // Without listeners, a second signal ends the process at once.
    for (const each of this.#watchers.keys()) this.#host.off(each, this.#listener);
    this.#watchers.clear();
    await within(SAVE_MS, allOf(saving));
    this.#end(name, () => {
      this.#ending = undefined;
      release();
    });
  }

  /** Ends the process by the signal. `survived` is called if a listener of the host keeps the process alive. */
  #end(name: string, survived: () => void): void {
    const { pid } = this.#host;
    this.#host.kill(pid, name);
    // The first process of a container ignores signals without a listener, and some hosts do not restore the default action.
    setTimeout(() => {
      if (this.#host.listenerCount(name) > nCleaners()) survived();
      else this.#host.exit(128 + EXIT_SIGNALS[name as ExitSignal]);
    }, END_MS);
  }
}

/**
 * How many listeners for each signal belong to the package `signal-exit`, which many programs load unknowingly. They only clean
 * up, and then end the process by the same signal if no other listener is left.
 */
function nCleaners(): number {
  const realm = globalThis as { [CLEANER]?: Counted; process?: { __signal_exit_emitter__?: Counted } };
  return (realm[CLEANER]?.count ?? 0) + (realm.process?.__signal_exit_emitter__?.count ?? 0);
}

const CLEANER = Symbol.for("signal-exit emitter");

interface Counted {
  readonly count?: number;
}

/** Resolves when all promises are settled, including those that are added meanwhile. */
async function allOf(promises: readonly Promise<void>[]): Promise<void> {
  for (let n = -1; n !== promises.length; ) {
    n = promises.length;
    await Promise.allSettled(promises);
  }
}

/** Resolves with the promise, or after `ms`. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([promise, new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
