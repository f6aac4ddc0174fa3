// Named locks with one holder at a time: across tabs if the host has Web Locks, else within this realm.

import { pings } from "./lock-probe.js";

/**
 * A request for a lock. The lock is held when `ready` has resolved, or at once if `ready` is undefined. `release` also
 * withdraws a request.
 */
export interface Held {
  readonly ready: Promise<void> | undefined;
  /** Resolves if another holder has taken the lock from us; undefined if that cannot happen. */
  readonly lost: Promise<void> | undefined;
  release(): void;
}

/** Locks by name. */
export interface Locks {
  /** Requests a lock. Requests are served in their order. */
  request(name: string): Held;
  /** Whether anybody holds the lock now. */
  isHeld(name: string): Promise<boolean>;
}

/** The Web Locks of this host; undefined if it has none, such as in a page without https. */
export function webLocks(): LockManager | undefined {
  return (globalThis as { navigator?: { locks?: LockManager } }).navigator?.locks;
}

/** The locks of this host. If a store cannot be shared with other realms, the locks belong to `scope`. */
export function locksOf(crossTab: boolean, scope: object): Locks {
  const web = webLocks();
  const realm: Locks = { request: (name) => realmLock(scope, name), isHeld: async (name) => realmQueues().get(scope)?.has(name) === true };
  if (!crossTab || web === undefined) return realm;
  const isHeld = async (name: string): Promise<boolean> => {
    try {
      return ((await web.query()).held ?? []).some((lock) => lock.name === name);
    } catch (error) {
      if (isDenied(error)) return realm.isHeld(name);
      throw error;
    }
  };
  return { request: (name) => webLock(web, name, realm), isHeld };
}

/** Whether the browser denies a page its storage or locks, as in a sandboxed frame. No other tab has the origin of such a page. */
export function isDenied(error: unknown): boolean {
  return (error as { name?: unknown } | null)?.name === "SecurityError";
}

/**
 * A lock that all tabs share. It is taken from a holder that does not answer, such as a frozen page. Where the browser
 * denies Web Locks, the lock is one of this realm.
 */
function webLock(locks: LockManager, name: string, realm: Locks): Held {
  const request = new AbortController();
  const [ready, lost] = [deferred(), deferred()];
  let state: "waiting" | "stealing" | "held" | "over" = "waiting";
  let letGo = (): void => {};
  let inRealm: Held | undefined;

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
    } else if (state === "waiting" && isDenied(error)) {
      const held = (inRealm = realm.request(name));
      void Promise.resolve(held.ready).then(hold).finally(() => held.release());
    } else if (state === while_) {
      ready.reject(error);
    }
  };
  const stopAsking = pings.ask(name, () => {
    state = "stealing";
    // The place in the queue is no longer needed.
    request.abort();
    locks.request(name, { steal: true }, hold).catch((error: unknown) => refused(error, "stealing"));
  });
  locks.request(name, { signal: request.signal }, hold).catch((error: unknown) => refused(error, "waiting"));

  const release = (): void => {
    const was = state;
    state = "over";
    stopAsking();
    if (was === "held") letGo();
    else request.abort();
    if (was === "waiting") inRealm?.release();
  };
  return { ready: ready.promise, lost: lost.promise, release };
}

function deferred(): { readonly promise: Promise<void>; resolve(): void; reject(error: unknown): void } {
  let [resolve, reject] = [(): void => {}, (_: unknown): void => {}];
  const promise = new Promise<void>((yes, no) => ([resolve, reject] = [yes, no]));
  // A withdrawn request may be rejected, and no code waits for it.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

type Queues = WeakMap<object, Map<string, (() => void)[]>>;

/**
 * One queue per store, so that agents with the same store wait for each other, also agents of two copies of this
 * package.
 */
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
    ready,
    lost: undefined,
    release() {
      const index = queue.indexOf(admit);
      if (index < 0) return;
      queue.splice(index, 1);
      if (index === 0) queue[0]?.();
      if (queue.length === 0) names.delete(name);
    },
  };
}
