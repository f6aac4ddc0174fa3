// Locks as Rust is given them.

import { LockgateError } from "./errors.js";
import type { OwnStore } from "./kinds.js";
import { locksOf, webLocks } from "./locks.js";
import type { Held, Lock } from "./locks.js";
import type { Instance } from "./wasm.js";

/** A lock that a dead instance lets go of: the next one wants it. */
export function lockPort(instance: Instance, lock: Lock): Lock {
  return (name) => {
    const held = lock(name);
    const forget = instance.onCrash(() => held.release());
    const release = (): void => {
      forget();
      held.release();
    };
    return { ...held, release };
  };
}

/** What keeps tabs from using localStorage at once. It looks first whether there is one: Rust would trap where it is forbidden. */
export function storeLock(instance: Instance, own: OwnStore | undefined): Lock {
  const web = webLocks();
  const lock = lockPort(instance, web === undefined ? locksOf(false, instance) : (name) => coherent(web, name));
  return (name) => {
    if (own !== undefined && "localStorage" in own) probeLocalStorage();
    return lock(name);
  };
}

/** How long a tab says which version it has written: far longer than a write takes to reach other tabs. */
const SAID_MS = 2_000;

/**
 * A Web Lock under which localStorage is the same in all tabs. The lock alone is not enough: a browser with several
 * processes hands the lock on before the writes made under it have arrived, and in Chromium a fifth of the writes of
 * three tabs were lost by that. So who has written holds one more lock for a while, with the version in its name, and
 * who comes next waits until it sees that version.
 */
function coherent(locks: LockManager, name: string): Held {
  const held = locksOf(true, locks)(name);
  let entered: string | undefined;
  let isLost = false;
  void held.lost?.then(() => (isLost = true));
  const ready = Promise.resolve(held.ready).then(async () => {
    await caughtUp(locks, name);
    // A page that was frozen while it waited may have been robbed; from here on nothing waits.
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
  return { ready, release };
}

/** The newest version that a tab says it has written, or "". */
async function written(locks: LockManager, name: string): Promise<string> {
  const { held = [] } = await locks.query();
  const said = held.map((lock) => lock.name ?? "").filter((each) => each.startsWith(`${name}@`));
  return said.map((each) => each.slice(name.length + 1)).reduce((one, other) => (other > one ? other : one), "");
}

/** Waits until this tab sees what others have written. */
async function caughtUp(locks: LockManager, name: string): Promise<void> {
  if (await sees(name, await written(locks, name))) return;
  // Nobody says it any more: the storage was cleared, and there is nothing to wait for.
  if ((await written(locks, name)) <= versionSeen(name)) return;
  throw behind();
}

function behind(): LockgateError {
  const hint = "try again; if it stays so, close other tabs of this site";
  return new LockgateError("STORE_BLOCKED", "another tab's writes to localStorage do not arrive", { hint });
}

/** Whether this tab sees that version, now or soon. */
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

/** The version of the store as this tab sees it; Rust writes it last. */
function versionSeen(name: string): string {
  return localStorage.getItem(`${name}!done`) ?? "";
}

/** Throws STORE_UNAVAILABLE where there is no localStorage, or a policy forbids it. */
function probeLocalStorage(): void {
  const hint = "use indexedDbStore() in a worker, or memoryStore() where nothing can be kept";
  let storage: Storage | null | undefined;
  try {
    storage = (globalThis as { window?: { readonly localStorage?: Storage | null } }).window?.localStorage;
  } catch (cause) {
    throw new LockgateError("STORE_UNAVAILABLE", "the browser forbids localStorage here", { hint, cause });
  }
  if (storage === null || storage === undefined) throw new LockgateError("STORE_UNAVAILABLE", "there is no localStorage here", { hint });
}
