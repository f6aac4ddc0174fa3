// A store that fails according to a plan, so that users can test how their program reacts.

import { LockgateError } from "../errors.js";
import type { Batch, Store } from "../types/store.js";

/** What happens to one operation: `fail` before it is done, `fail-after` it is done, or `hang`: it never returns. */
export type Fault =
  | "ok"
  | "fail"
  | "fail-after"
  | "hang"
  /** The operation is done after this time. */
  | { readonly delayMs: number };

/** Returns what happens to the `nth` operation of its kind, counted from 1. */
export type FaultPlan = (operation: "get" | "list" | "commit", nth: number, batch?: Batch) => Fault;

/** Wraps a store so that it fails according to the plan. A failure is STORE_UNAVAILABLE; with `fail-after` the batch is stored. */
export function faultyStore(store: Store, plan: FaultPlan): Store {
  const counts = { get: 0, list: 0, commit: 0 };
  const faulty = async <T>(operation: keyof typeof counts, work: () => Promise<T>, batch?: Batch): Promise<T> => {
    const nth = (counts[operation] += 1);
    const fault = plan(operation, nth, batch);
    if (fault === "fail") throw failed(operation, nth, "before it was done");
    if (fault === "hang") return new Promise<T>(() => {});
    if (typeof fault === "object") await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    const answer = await work();
    if (fault === "fail-after") throw failed(operation, nth, "after it was done");
    return answer;
  };
  return {
    name: `faulty ${store.name}`,
    capabilities: store.capabilities,
    get: (keys) => faulty("get", () => store.get(keys)),
    list: (prefix, options) => faulty("list", () => store.list(prefix, options)),
    commit: (batch) => faulty("commit", () => store.commit(batch), batch),
    ...(store.report === undefined ? {} : { report: () => store.report!() }),
    close: async () => store.close?.(),
  };
}

function failed(operation: string, nth: number, when: string): LockgateError {
  return new LockgateError("STORE_UNAVAILABLE", `${operation} ${nth} failed as planned, ${when}`, {
    hint: "the plan of faultyStore demands it",
  });
}
