// The locks that Rust uses.

import { LockgateError } from "../errors.js";
import type { OwnStore } from "../values/internals.js";
import { locksOf, webLocks } from "./locks.js";
import type { JsLocks } from "../glue.js";
import type { Held, Locks } from "./locks.js";
import type { Instance } from "../runtime/wasm.js";

/** Locks that are released when the instance crashes, because the next instance needs them. */
export function lockPort(instance: Instance, locks: Locks): JsLocks {
  return {
    isHeld: (name) => locks.isHeld(name),
    acquire(name) {
      const held = locks.request(name);
      const forget = instance.onCrash(() => held.release());
      const release = (): void => {
        forget();
        held.release();
      };
      return { ...held, release };
    },
  };
}

/**
 * Locks that keep tabs from using localStorage at the same time. They first check that localStorage exists and is
 * allowed, so that a page without it gets a clear error.
 */
export function storeLocks(instance: Instance, own: OwnStore | undefined): JsLocks {
  const web = webLocks();
  const plain = locksOf(web !== undefined, instance);
  const locks = lockPort(instance, web === undefined ? plain : { ...plain, request: (name) => coherent(web, name) });
  return {
    ...locks,
    acquire(name) {
      if (own !== undefined && "localStorage" in own) probeLocalStorage();
      return locks.acquire(name);
    },
  };
}

/** How long a tab announces the version it has written. This is much longer than a write needs to reach other tabs. */
const SAID_MS = 2_000;

/**
 * A Web Lock that also makes sure that all tabs see the same localStorage. The lock alone is not enough: a browser with
 * several processes passes the lock on before the writes under it have arrived. In Chromium a fifth of the writes of
 * three tabs were lost that way. So a tab that has written holds a second lock for a while, with the version in its
 * name, and the next tab waits until it sees that version.
 */
function coherent(locks: LockManager, name: string): Held {
  const held = locksOf(true, locks).request(name);
  let entered: string | undefined;
  let isLost = false;
  void held.lost?.then(() => (isLost = true));
  const ready = Promise.resolve(held.ready).then(async () => {
    await caughtUp(locks, name);
    // Another tab may have taken the lock while this page was frozen. There is no `await` after this check.
    if (isLost) throw behind();
    entered = versionSeen(name);
  });
  ready.catch(() => {});
  const release = (): void => {
    const version = versionSeen(name);
    if (entered === undefined || version === entered) return held.release();
    const say = (): Promise<void> => {
      held.release();
      return new Promise((resolve) => setTimeout(resolve, SAID_MS));
    };
    locks.request(`${name}@${version}`, say).catch(() => held.release());
  };
  return { ready, lost: undefined, release };
}

/** The newest version that a tab announces, or "". */
async function written(locks: LockManager, name: string): Promise<string> {
  const { held = [] } = await locks.query();
  const said = held.map((lock) => lock.name ?? "").filter((each) => each.startsWith(`${name}@`));
  return said.map((each) => each.slice(name.length + 1)).reduce((one, other) => (other > one ? other : one), "");
}

/** Waits until this tab sees the writes of other tabs. */
async function caughtUp(locks: LockManager, name: string): Promise<void> {
  if (await sees(name, await written(locks, name))) return;
  // No tab announces a newer version any more: the storage was cleared, and there is nothing to wait for.
  if ((await written(locks, name)) <= versionSeen(name)) return;
  throw behind();
}

function behind(): LockgateError {
  const hint = "try again; if it happens again, close other tabs of this site";
  return new LockgateError("STORE_BLOCKED", "writes of another tab to localStorage do not arrive in this tab", { hint });
}

/** Whether this tab sees the version, now or soon. */
function sees(name: string, version: string): Promise<boolean> {
  if (versionSeen(name) >= version) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (isSeen: boolean): void => {
      clearTimeout(timer);
      removeEventListener("storage", look);
      resolve(isSeen);
    };
    const look = (): void => {
      if (versionSeen(name) >= version) end(true);
    };
    const timer = setTimeout(() => end(false), 2 * SAID_MS);
    addEventListener("storage", look);
  });
}

/** The version of the store that this tab sees. Rust writes it last. A page that is closing has no localStorage any more: it sees none. */
function versionSeen(name: string): string {
  try {
    return (localStorage as Storage | null)?.getItem(`${name}!done`) ?? "";
  } catch {
    return "";
  }
}

/** Throws STORE_UNAVAILABLE if there is no localStorage, or a policy forbids it. */
function probeLocalStorage(): void {
  const hint = "use indexedDbStore() in a worker, or memoryStore() if nothing can be stored";
  let storage: Storage | null | undefined;
  try {
    storage = (globalThis as { window?: { readonly localStorage?: Storage | null } }).window?.localStorage;
  } catch (cause) {
    throw new LockgateError("STORE_UNAVAILABLE", "the browser forbids localStorage here", { hint, cause });
  }
  if (storage === null || storage === undefined) throw new LockgateError("STORE_UNAVAILABLE", "there is no localStorage here", { hint });
}
