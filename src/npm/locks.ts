// One holder of a name at a time: across tabs where the host has Web Locks, else within this realm.

import { Pings } from "./pings.js";

/** A wish for a lock; the lock itself once `ready` has come, or at once where there is none. `release` also gives up a wish. */
export interface Held {
  readonly ready?: Promise<void>;
  /** Comes if somebody has taken the lock from us; absent where nobody can. */
  readonly lost?: Promise<void>;
  release(): void;
}

/** Asks for a lock by name, first come first served. */
export type Lock = (name: string) => Held;

const pings = new Pings();

/** The Web Locks of this host, if it has any: a page that is not secure has none. */
export function webLocks(): LockManager | undefined {
  return (globalThis as { navigator?: { locks?: LockManager } }).navigator?.locks;
}

/** The locks of this host; `scope` keeps stores apart that other realms cannot reach. */
export function locksOf(crossTab: boolean, scope: object): Lock {
  const web = webLocks();
  return crossTab && web !== undefined ? (name) => webLock(web, name) : (name) => realmLock(scope, name);
}

/** A lock that all tabs share. From a holder that does not answer, such as a page that is frozen, it is taken. */
function webLock(locks: LockManager, name: string): Held {
  const wish = new AbortController();
  const [ready, lost] = [deferred(), deferred()];
  let state: "waiting" | "stealing" | "held" | "over" = "waiting";
  let letGo = (): void => {};

  const hold = async (): Promise<void> => {
    stopAsking();
    if (state === "over") return;
    state = "held";
    const silence = pings.answer(name);
    const released = new Promise<void>((resolve) => (letGo = resolve));
    ready.resolve();
    await released;
    silence();
  };
  const refused = (error: unknown, while_: typeof state): void => {
    if (state === "held") {
      state = "over";
      letGo();
      lost.resolve();
    } else if (state === while_) {
      ready.reject(error);
    }
  };
  const stopAsking = pings.ask(name, () => {
    state = "stealing";
    // The place in the queue is not needed any more.
    wish.abort();
    locks.request(name, { steal: true }, hold).catch((error: unknown) => refused(error, "stealing"));
  });
  locks.request(name, { signal: wish.signal }, hold).catch((error: unknown) => refused(error, "waiting"));

  const release = (): void => {
    const was = state;
    state = "over";
    stopAsking();
    if (was === "held") letGo();
    else wish.abort();
  };
  return { ready: ready.promise, lost: lost.promise, release };
}

function deferred(): { readonly promise: Promise<void>; resolve(): void; reject(error: unknown): void } {
  let [resolve, reject] = [(): void => {}, (_: unknown): void => {}];
  const promise = new Promise<void>((yes, no) => ([resolve, reject] = [yes, no]));
  // Whoever gave a wish up does not wait for its answer.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

type Queues = WeakMap<object, Map<string, (() => void)[]>>;

/** Kept for the store, so that agents over one store wait for each other, also those of two copies of this package. */
function realmQueues(): Queues {
  const realm = globalThis as { [key: symbol]: Queues | undefined };
  return (realm[Symbol.for("lockgate.locks.1")] ??= new WeakMap());
}

function realmLock(scope: object, name: string): Held {
  const queues = realmQueues();
  const names = queues.get(scope) ?? new Map<string, (() => void)[]>();
  queues.set(scope, names);
  const queue = names.get(name) ?? [];
  names.set(name, queue);
  let admit = (): void => {};
  const ready = queue.length === 0 ? undefined : new Promise<void>((resolve) => (admit = resolve));
  queue.push(admit);
  return {
    ...(ready === undefined ? {} : { ready }),
    release() {
      const index = queue.indexOf(admit);
      if (index < 0) return;
      queue.splice(index, 1);
      if (index === 0) queue[0]?.();
      if (queue.length === 0) names.delete(name);
    },
  };
}
