// The report of `agent.storage()`: how long the store keeps its data, who shares it, and how full it is.

import { webLocks } from "../host/locks.js";
import type { StorageReport, Store, StoreCapabilities } from "../types.js";

/** Above this part of the quota the report has a warning. */
const NEARLY_FULL = 0.8;

/** Reports on the store and this host. It never requests persistence from the browser, because some browsers would ask the user. */
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
    isBrowsers && crossTab && webLocks() === undefined && "this insecure page has no Web Locks: tabs wait for each other through the store, which is slower",
    isApart && "tabs that use one session do not wait for each other: if two turns overlap, one may end as SUPERSEDED",
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

/** What the browser reports about the storage of this origin, or NOTHING_KNOWN. */
async function browserStorage(): Promise<{ persisted: boolean; usage: number | null; quota: number | null }> {
  const manager = (globalThis as { navigator?: { storage?: Partial<StorageManager> } }).navigator?.storage;
  try {
    const persisted = (await manager?.persisted?.()) ?? false;
    const { usage = null, quota = null } = (await manager?.estimate?.()) ?? {};
    return { persisted, usage, quota };
  } catch {
    // A sandboxed frame throws.
    return NOTHING_KNOWN;
  }
}
