// One holder of a name at a time: across tabs where the host has Web Locks, else within this realm.

/** A wish for a lock; the lock itself once `ready` has come. `release` also gives up a wish. */
export interface Held {
  readonly ready: Promise<void>;
  release(): void;
}

/** Asks for a lock by name, first come first served. */
export type Lock = (name: string) => Held;

/** The locks of this host; `scope` keeps stores apart that other realms cannot reach. */
export function locksOf(crossTab: boolean, scope: object): Lock {
  const web = (globalThis as { navigator?: { locks?: LockManager } }).navigator?.locks;
  return crossTab && web !== undefined ? (name) => webLock(web, name) : (name) => realmLock(scope, name);
}

function webLock(locks: LockManager, name: string): Held {
  const wish = new AbortController();
  let release = (): void => wish.abort();
  const ready = new Promise<void>((resolve, reject) => {
    locks
      .request(name, { signal: wish.signal }, () => {
        resolve();
        return new Promise<void>((done) => {
          release = done;
        });
      })
      // Given up, or stolen: whoever waited for it has gone, or learns it from the revision of the head.
      .catch(reject);
  });
  ready.catch(() => {});
  return { ready, release: () => release() };
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
  let admit!: () => void;
  const ready = new Promise<void>((resolve) => {
    admit = resolve;
  });
  queue.push(admit);
  if (queue[0] === admit) admit();
  return {
    ready,
    release() {
      const index = queue.indexOf(admit);
      if (index < 0) return;
      queue.splice(index, 1);
      if (index === 0) queue[0]?.();
      if (queue.length === 0) names.delete(name);
    },
  };
}
