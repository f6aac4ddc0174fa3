// The report of `agent.storage()`: how long the store keeps its data, who shares it, and how full it is.

import { isDenied, webLocks } from "../host/locks.js";
import { storeInternals } from "../values/internals.js";
import type { StorageReport, Store, StoreCapabilities } from "../types.js";

/** Above this part of the quota the report has a warning. */
const NEARLY_FULL = 0.8;

/** The warning where the browser denies the store. */
export const DENIED = "the browser denies this page its storage, as in a sandboxed frame, so calls fail: use memoryStore()";

/** Whether the browser denies this page a store of its own, such as IndexedDB. Nothing is created to find out. */
export async function isStoreDenied(store: Store): Promise<boolean> {
  const own = storeInternals(store)?.own;
  try {
    if (own !== undefined && "localStorage" in own) void (globalThis as { localStorage?: unknown }).localStorage;
    if (own !== undefined && "indexedDb" in own) await (globalThis as { indexedDB?: Partial<IDBFactory> }).indexedDB?.databases?.();
    return false;
  } catch (error) {
    return isDenied(error);
  }
}

/** Reports on the store and this host. It never requests persistence from the browser, because some browsers would ask the user. */
export async function storageReport(store: Store, crossTab: boolean): Promise<StorageReport> {
  const { capabilities } = store;
  if (await isStoreDenied(store)) {
    return { store: String(store.name), durability: "not-durable", crossTab: false, ...NO_NUMBERS, warnings: [DENIED] };
  }
  const isBrowsers = capabilities.shared === "origin";
  const { persisted, usage, quota } = isBrowsers ? await browserStorage() : NOTHING_KNOWN;
  const asked = await store.report?.();
  const durability = asked?.durability ?? durabilityOf(capabilities, persisted);
  const isApart = isBrowsers && !crossTab;
  const warnings = [
    durability === "memory-only" && "sessions are kept in memory only: they are gone when this page, worker or process ends",
    isBrowsers && !persisted && EVICTED,
    isBrowsers && capabilities.durability === "none" && KILLED,
    isBrowsers && capabilities.durability === "process" && RELAXED,
    !isBrowsers && asked === undefined && durability === "may-be-evicted" && "the store may drop records by itself",
    !isBrowsers && asked === undefined && durability === "not-durable" && UNSAFE[capabilities.durability],
    ...(asked?.warnings ?? []),
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

const RELAXED = 'a crash of the machine or a power cut loses the last turns: use indexedDbStore(name, { durability: "strict" })';
const UNSAFE = {
  none: "a hard stop of the store loses the last turns",
  process: "a crash of the machine or a power cut loses the last turns",
  disk: false,
} as const;

const NO_NUMBERS = { usage: null, quota: null };
const NOTHING_KNOWN = { persisted: false, ...NO_NUMBERS };

function durabilityOf({ shared, durability, evictable }: StoreCapabilities, persisted: boolean): StorageReport["durability"] {
  if (shared === "process" && durability === "none") return "memory-only";
  if (evictable && !persisted) return "may-be-evicted";
  return durability === "disk" ? "durable" : "not-durable";
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
