// What every store must do, as a list of rules that any test runner can run, in any JavaScript.

import { RULES } from "./rule-list.js";
import type { Data, Many, RuleBatch, RuleText, Step } from "./rule-list.js";
import type { Batch, Store, StoreCapabilities } from "./store-types.js";

/** One rule: a sentence that is true of a good store, and its proof. */
export interface StoreRule {
  readonly name: string;
  /** Why the rule says nothing about this store. Known at once if `makeStore` answers without a promise, else when it has run. */
  readonly skip: string | null;
  /** Proves the rule on a store of its own, and rejects with what was found wrong. */
  run(): Promise<void>;
}

/** Makes an empty store; asked with a store, makes another over the same place. */
export type MakeStore = (beside?: Store) => Store | Promise<Store>;

/** The largest value that a rule puts. */
const LARGEST = 1_000_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The rules for stores: `for (const rule of storeRules(makeStore)) test(rule.name, { skip: rule.skip ?? false }, rule.run)`.
 * Each runs on a fresh store of `makeStore`, and closes it. A maker that takes a parameter, `makeStore(beside)`, is also
 * asked for second stores over the place of the one it is given: then those rules run that need two.
 */
export function storeRules(makeStore: MakeStore): readonly StoreRule[] {
  const first = makeStore();
  // One that nobody waits for yet must not count as unhandled.
  if (first instanceof Promise) first.catch(() => {});
  let unused: Store | Promise<Store> | undefined = first;
  const take = (): Store | Promise<Store> => {
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
      const store = await take();
      capabilities = store.capabilities;
      const skips = reasonToSkip(rule, capabilities, hasBeside) !== null;
      const needsBeside = rule.needs?.includes("shared") === true;
      const beside = needsBeside && !skips ? await makeStore(store) : store;
      try {
        if (!skips) await prove(rule, store, beside);
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
      if (capabilities.shared === "process") return "the store is of one process";
      if (!hasBeside) return "makeStore takes no store to stand beside";
    } else if (!capabilities[need]) return `the store says ${need}: false`;
  }
  return null;
}

async function prove(rule: RuleText, store: Store, beside: Store): Promise<void> {
  const largest = Math.min(store.capabilities.maxValueBytes ?? LARGEST, LARGEST);
  for (const [index, step] of rule.steps.entries()) {
    const complaint = await take(step, step.beside === true ? beside : store, largest);
    if (complaint !== null) throw new Error(`${store.name} breaks the rule "${rule.rule}" in step ${index + 1}: ${complaint}`);
  }
}

/** Takes a step, and says what is wrong with the answer. */
async function take(step: Step, store: Store, largest: number): Promise<string | null> {
  if ("commit" in step) return commit(step, store, largest);
  if ("together" in step) return together(step, store, largest);
  return "get" in step ? get(step, store, largest) : list(step, store, largest);
}

async function commit(step: Extract<Step, { commit: RuleBatch }>, store: Store, largest: number): Promise<string | null> {
  const batch = batchOf(step.commit, largest);
  const answer = await store.commit(batch);
  if (step.thenSpoil) for (const { value } of batch.put) value.fill(0);
  return differs(`commit of ${batch.revision}`, answer, step.answers ?? "ok");
}

async function together(step: Extract<Step, { together: Many<RuleBatch> }>, store: Store, largest: number): Promise<string | null> {
  const batches = written(step.together).map((batch) => batchOf(batch, largest));
  const answers = await Promise.all(batches.map((batch) => store.commit(batch)));
  const winners = batches.filter((_, index) => answers[index] === "ok");
  const wanted = step.oneWins === undefined ? batches.length : 1;
  if (winners.length !== wanted) return `${winners.length} of ${batches.length} commits went through, not ${wanted}`;
  if (step.oneWins === undefined) return null;
  const [found] = await store.get([step.oneWins]);
  return differs("what is stored", found?.revision, winners[0]?.revision);
}

async function get(step: Extract<Step, { get: Many<Data> }>, store: Store, largest: number): Promise<string | null> {
  const keys = written(step.get).map((key) => textOf(key, largest));
  const found = await store.get(keys);
  const shown = found.map((record) => (record === null ? null : [show(record.value), record.revision]));
  const wanted = written(step.answers).map((each) => (each === null ? null : [show(bytesOf(each[0], largest)), each[1]]));
  if (step.thenSpoil) for (const record of found) record?.value.fill(0);
  return differs(`get of ${keys.length} keys`, shown, wanted);
}

async function list(step: Extract<Step, { list: string }>, store: Store, largest: number): Promise<string | null> {
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
  const wanted = written(step.answers ?? []).map(([key, value, revision]) => [textOf(key, largest), show(bytesOf(value, largest)), revision]);
  if (step.thenSpoil) for (const { value } of found) value.fill(0);
  return differs(what, shown, wanted);
}

function batchOf(batch: RuleBatch, largest: number): Batch {
  const keys = (list: Many<Data> = []): string[] => written(list).map((key) => textOf(key, largest));
  return {
    ...(batch.expect && { expect: { key: textOf(batch.expect[0], largest), revision: batch.expect[1] } }),
    revision: batch.revision,
    put: written(batch.put ?? []).map(([key, value]) => ({ key: textOf(key, largest), value: bytesOf(value, largest) })),
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

/** The list with every `{ many, of }` written out. */
function written<T>(list: Many<T>): readonly T[] {
  return list.flatMap((item) => (isMany(item) ? Array.from({ length: item.many }, (_, n) => numbered(item.of, n)) : [item]));
}

function isMany<T>(item: T | { readonly many: number; readonly of: T }): item is { readonly many: number; readonly of: T } {
  return typeof item === "object" && item !== null && "many" in item;
}

function numbered<T>(value: T, n: number): T {
  return JSON.parse(JSON.stringify(value).replaceAll("#", String(n).padStart(4, "0"))) as T;
}

/** Bytes as something that can be compared and printed; a view of another kind is not what the contract says. */
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
