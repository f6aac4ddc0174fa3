// What a store is worth: how long it keeps things, who else may use it, how full it is.

import { webLocks } from "./locks.js";
import type { StorageReport, Store, StoreCapabilities } from "./types.js";

/** From this part of the quota on, people are told. */
const NEARLY_FULL = 0.8;

/** Looks at the store and at this host. It asks the browser for no favours: some browsers would ask the user. */
export async function storageReport(store: Store, crossTab: boolean): Promise<StorageReport> {
  const { capabilities } = store;
  const isBrowsers = capabilities.shared === "origin";
  const { persisted, usage, quota } = isBrowsers ? await browserStorage() : NOTHING_KNOWN;
  const durability = durabilityOf(capabilities, persisted);
  const isApart = isBrowsers && !crossTab;
  const warnings = [
    durability === "memory-only" && "sessions are kept in memory only: they are gone when this page, worker or process ends",
    isBrowsers && !persisted && EVICTED,
    isBrowsers && capabilities.durability === "none" && KILLED,
    !isBrowsers && durability === "may-be-evicted" && "the store may drop records by itself, or lose the last ones when it is stopped hard",
    isBrowsers && crossTab && webLocks() === undefined && "this page has no Web Locks, being not secure: tabs wait for each other through the store, which is slower",
    isApart && "tabs that use one session do not wait for each other here: a turn that meets another's may end as SUPERSEDED",
    usage !== null && quota !== null && usage > NEARLY_FULL * quota && "the browser's storage for this site is nearly full: delete or export sessions",
  ];
  return {
    store: String(store.name),
    durability,
    crossTab: capabilities.shared !== "process" && !isApart,
    usage,
    quota,
    warnings: warnings.filter((warning) => warning !== false),
  };
}

const EVICTED =
  "the browser may delete this site's data when space is short, and Safari does so after seven days without a visit: " +
  "call navigator.storage.persist() on a click, or export what matters";
const KILLED = "localStorage loses the last turns when the browser is killed: prefer indexedDbStore()";

const NOTHING_KNOWN = { persisted: false, usage: null, quota: null };

function durabilityOf({ shared, durability, evictable }: StoreCapabilities, persisted: boolean): StorageReport["durability"] {
  if (shared === "process" && durability === "none") return "memory-only";
  return durability === "none" || (evictable && !persisted) ? "may-be-evicted" : "durable";
}

/** What the browser says of this origin's storage; where it says nothing, nothing is promised. */
async function browserStorage(): Promise<{ persisted: boolean; usage: number | null; quota: number | null }> {
  const manager = (globalThis as { navigator?: { storage?: Partial<StorageManager> } }).navigator?.storage;
  try {
    const persisted = (await manager?.persisted?.()) ?? false;
    const { usage = null, quota = null } = (await manager?.estimate?.()) ?? {};
    return { persisted, usage, quota };
  } catch {
    // A sandboxed frame refuses to answer.
    return NOTHING_KNOWN;
  }
}
