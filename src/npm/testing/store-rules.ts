// The rules that every store must follow, as a list that any test runner can run in any JavaScript host.

import { RULES } from "./rule-list.js";
import type { Data, Many, RuleBatch, RuleText, RuleStep } from "./rule-list.js";
import type { Batch, Store, StoreCapabilities } from "../types/store.js";

/** One rule: its name is a sentence that is true for a correct store, and `run` tests it. */
export interface StoreRule {
  /** The rule as a sentence. */
  readonly name: string;
  /** Why the rule does not apply to this store. Known at once if `makeStore` returns no promise, else after `run`. */
  readonly skip: string | null;
  /** Tests the rule on a fresh store, and rejects with what was wrong. */
  run(): Promise<void>;
}

/** Makes an empty store. Called with a store, it makes another one that shares the records of the given store. */
export type MakeStore = (beside?: Store) => Store | Promise<Store>;

/** The size of the largest value that a rule stores. */
const LARGEST = 1_000_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The rules for stores: `for (const rule of storeRules(makeStore)) test(rule.name, { skip: rule.skip ?? false }, rule.run)`.
 * Each rule runs on a fresh store from `makeStore`, and closes it. If the function takes a parameter, `makeStore(beside)`, it must
 * also make a second store that shares the records of `beside`. Then the rules that need two stores run too.
 */
export function storeRules(makeStore: MakeStore): readonly StoreRule[] {
  const first = makeStore();
  // Nothing awaits this promise yet, so without this a rejection would count as unhandled.
  if (first instanceof Promise) first.catch(() => {});
  let unused: Store | Promise<Store> | undefined = first;
  const nextStore = (): Store | Promise<Store> => {
    const store = unused ?? makeStore();
    unused = undefined;
    return store;
  };
  const hasBeside = makeStore.length > 0;
  let capabilities = first instanceof Promise ? undefined : first.capabilities;
  return RULES.map((rule) => ({
    name: rule.rule,
    get skip() {
      return capabilities === undefined ? null : reasonToSkip(rule, capabilities, hasBeside);
    },
    async run() {
      const store = await nextStore();
      capabilities = store.capabilities;
      const skips = reasonToSkip(rule, capabilities, hasBeside) !== null;
      const needsBeside = rule.needs?.includes("shared") === true;
      const beside = needsBeside && !skips ? await makeStore(store) : store;
      try {
        if (!skips) await runSteps(rule, store, beside);
      } finally {
        if (beside !== store) await beside.close?.();
        await store.close?.();
      }
    },
  }));
}

function reasonToSkip(rule: RuleText, capabilities: StoreCapabilities, hasBeside: boolean): string | null {
  for (const need of rule.needs ?? []) {
    if (need === "shared") {
      if (capabilities.shared === "process") return "the store is used by one process only";
      if (!hasBeside) return "makeStore takes no parameter, so there is no second store";
    } else if (!capabilities[need]) return `the store declares ${need}: false`;
  }
  return null;
}

async function runSteps(rule: RuleText, store: Store, beside: Store): Promise<void> {
  const largest = Math.min(store.capabilities.maxValueBytes ?? LARGEST, LARGEST);
  for (const [index, step] of rule.steps.entries()) {
    const complaint = await runStep(step, step.beside === true ? beside : store, largest);
    if (complaint !== null) throw new Error(`${store.name} breaks the rule "${rule.rule}" in step ${index + 1}: ${complaint}`);
  }
}

/** Runs one step. Returns what is wrong with the answer, or null. */
async function runStep(step: RuleStep, store: Store, largest: number): Promise<string | null> {
  if ("commit" in step) return commit(step, store, largest);
  if ("together" in step) return together(step, store, largest);
  return "get" in step ? get(step, store, largest) : list(step, store, largest);
}

async function commit(step: Extract<RuleStep, { commit: RuleBatch }>, store: Store, largest: number): Promise<string | null> {
  const batch = batchOf(step.commit, largest);
  const answer = await store.commit(batch);
  if (step.thenSpoil) for (const { value } of batch.put) value.fill(0);
  return differs(`commit of ${batch.revision}`, answer, step.answers ?? "ok");
}

async function together(step: Extract<RuleStep, { together: Many<RuleBatch> }>, store: Store, largest: number): Promise<string | null> {
  const batches = expanded(step.together).map((batch) => batchOf(batch, largest));
  const answers = await Promise.all(batches.map((batch) => store.commit(batch)));
  const winners = batches.filter((_, index) => answers[index] === "ok");
  const wanted = step.oneWins === undefined ? batches.length : 1;
  if (winners.length !== wanted) return `${winners.length} of ${batches.length} commits succeeded, not ${wanted}`;
  if (step.oneWins === undefined) return null;
  const [found] = await store.get([step.oneWins]);
  return differs("what is stored", found?.revision, winners[0]?.revision);
}

async function get(step: Extract<RuleStep, { get: Many<Data> }>, store: Store, largest: number): Promise<string | null> {
  const keys = expanded(step.get).map((key) => textOf(key, largest));
  const found = await store.get(keys);
  const shown = found.map((record) => (record === null ? null : [show(record.value), record.revision]));
  const wanted = expanded(step.answers).map((each) => (each === null ? null : [show(bytesOf(each[0], largest)), each[1]]));
  if (step.thenSpoil) for (const record of found) record?.value.fill(0);
  return differs(`get of ${keys.length} keys`, shown, wanted);
}

async function list(step: Extract<RuleStep, { list: string }>, store: Store, largest: number): Promise<string | null> {
  const { list: prefix, after, limit, keysOnly } = step;
  const page = { ...(after !== undefined && { after }), ...(limit !== undefined && { limit }), ...(keysOnly && { keysOnly }) };
  const found = await store.list(prefix, page);
  const what = `list of ${JSON.stringify(prefix)}`;
  const keys = found.map(({ key }) => key);
  const revisions = found.map(({ revision }) => revision);
  if (step.keys !== undefined) {
    return differs(what, keys, step.keys) ?? (step.revisions === undefined ? null : differs(`${what}: revisions`, revisions, step.revisions));
  }
  const shown = found.map(({ key, value, revision }) => [key, show(value), revision]);
  const wanted = expanded(step.answers ?? []).map(([key, value, revision]) => [textOf(key, largest), show(bytesOf(value, largest)), revision]);
  if (step.thenSpoil) for (const { value } of found) value.fill(0);
  return differs(what, shown, wanted);
}

function batchOf(batch: RuleBatch, largest: number): Batch {
  const keys = (list: Many<Data> = []): string[] => expanded(list).map((key) => textOf(key, largest));
  return {
    ...(batch.expect && { expect: { key: textOf(batch.expect[0], largest), revision: batch.expect[1] } }),
    revision: batch.revision,
    put: expanded(batch.put ?? []).map(([key, value]) => ({ key: textOf(key, largest), value: bytesOf(value, largest) })),
    remove: keys(batch.remove),
    ...(batch.removePrefix && { removePrefix: keys(batch.removePrefix) }),
  };
}

function bytesOf(data: Data, largest: number): Uint8Array {
  if (typeof data === "string") return encoder.encode(data);
  if ("bytes" in data) return Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const times = data.times === "largest" ? Math.floor(largest / encoder.encode(data.repeat).length) : data.times;
  return encoder.encode(data.repeat.repeat(times) + (data.then ?? ""));
}

const textOf = (data: Data, largest: number): string => (typeof data === "string" ? data : decoder.decode(bytesOf(data, largest)));

/** The list with each `{ many, of }` replaced by its items. */
function expanded<T>(list: Many<T>): readonly T[] {
  return list.flatMap((item) => (isMany(item) ? Array.from({ length: item.many }, (_, n) => numbered(item.of, n)) : [item]));
}

function isMany<T>(item: T | { readonly many: number; readonly of: T }): item is { readonly many: number; readonly of: T } {
  return typeof item === "object" && item !== null && "many" in item;
}

function numbered<T>(value: T, n: number): T {
  return JSON.parse(JSON.stringify(value).replaceAll("#", String(n).padStart(4, "0"))) as T;
}

/** Bytes as text that can be compared and printed. Only a Uint8Array is allowed. */
function show(value: unknown): string {
  if (!(value instanceof Uint8Array)) return `not a Uint8Array: ${Object.prototype.toString.call(value)}`;
  let text = "";
  for (const byte of value) text += String.fromCharCode(byte);
  return text;
}

function differs(what: string, found: unknown, wanted: unknown): string | null {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  return one === other ? null : `${what} answered ${brief(one)}, not ${brief(other)}`;
}

const brief = (text = "undefined"): string => (text.length > 200 ? `${text.slice(0, 200)}… (${text.length} characters)` : text);
