// Helpers for stories: models, stores and promises that a test controls. Copied into the project.
import assert from "node:assert/strict";
import { LockgateError, customModel, memoryStore, textOf } from "lockgate";

/** A model written as an async generator. */
export const modelOf = (generate, id = "story") => customModel({ id, generate });

/** A model that answers every question with a text that contains the question. */
export const echo = (prefix = "you said ") =>
  modelOf(async function* ({ messages }) {
    yield { type: "text", text: prefix + textOf(messages.findLast(({ role }) => role === "user")) };
  });

/** A promise that the test settles. */
export function signpost() {
  let pass, fail;
  const passed = new Promise((resolve, reject) => ([pass, fail] = [resolve, reject]));
  return { passed, pass, fail };
}

/** Resolves for all when `n` have arrived. */
export function barrier(n) {
  const { passed, pass } = signpost();
  let arrived = 0;
  return () => {
    if (++arrived === n) pass();
    return passed;
  };
}

/** Lets the event loop turn `n` times. */
export async function turns(n) {
  for (let turn = 0; turn < n; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** A model that starts its first answer, reports when the start was read, and waits until it is stopped. Later it answers `then`. */
export function endless(then = "and then") {
  const { passed: reached, pass } = signpost();
  let asked = 0;
  const model = modelOf(async function* (_request, { signal }) {
    if (++asked > 1) return yield { type: "text", text: then };
    const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
    for (const text of ["once ", "upon ", "a time"]) yield { type: "text", text };
    await turns(1);
    pass();
    await stopped;
  });
  return { model, reached };
}

/** All events of a call. */
export async function readAll(call) {
  const events = [];
  for await (const event of call) events.push(event);
  return events;
}

/** The error that a promise rejects with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the promise did not reject");
}

/** The error that a function throws, or that its promise rejects with. */
export const refusal = (attempt) => rejection((async () => attempt())());

/** Messages as `role: text`, or as the state and text of a tool's result. */
export const lines = (messages) =>
  messages.map(({ role, content }) => {
    const [result] = content.filter(({ type }) => type === "tool_result");
    return result ? `${result.state}: ${textOf(result.output)}` : `${role}: ${textOf({ content })}`;
  });

/** The results of tools in a request or a history, oldest first. */
export const resultsIn = (messages) =>
  messages.flatMap(({ content }) => content.filter(({ type }) => type === "tool_result"));

/** A script that makes tool calls, each `[name, input]`, one after the other. */
export const callsOf = (...calls) => [
  ...calls.map(([name, input]) => ({ toolCalls: [{ name, input }] })),
  "Done.",
];

/** The results of the tool calls of a reply, as texts. An error starts with `error: `. */
export const outcomesOf = ({ messages }) =>
  resultsIn(messages).map(({ state, output }) => {
    const text = output.map((block) => block.text).join("|");
    return state === "success" ? text : `${state}: ${text}`;
  });

/** A store that counts its operations. `around.commit(batch, next)` and the like replace a method. */
export function watched(around = {}, inner = memoryStore()) {
  const count = { get: 0, list: 0, commit: 0 };
  const wrap = (name) => (first, second) => {
    count[name] += 1;
    const next = () => inner[name](first, second);
    return around[name] ? around[name](first, next) : next();
  };
  const { name, capabilities } = inner;
  const store = {
    name,
    capabilities,
    get: wrap("get"),
    list: wrap("list"),
    commit: wrap("commit"),
  };
  return { store, count };
}

/** A simple store like a user's: a slow Map. */
export function mapStore() {
  const records = new Map();
  const slowly = async (answer) => {
    await turns(1 + (records.size % 3));
    return answer();
  };
  return {
    name: "map",
    capabilities: {
      atomic: true,
      compareAndSet: true,
      shared: "process",
      durability: "none",
      evictable: true,
      maxValueBytes: null,
    },
    get: (keys) => slowly(() => keys.map((key) => records.get(key) ?? null)),
    list: (prefix, { after = "", limit = Infinity } = {}) =>
      slowly(() => {
        const keys = [...records.keys()].filter((key) => key.startsWith(prefix) && key > after);
        return keys
          .sort()
          .slice(0, limit)
          .map((key) => ({ key, ...records.get(key) }));
      }),
    commit: ({ expect, revision, put, remove, removePrefix = [] }) =>
      slowly(() => {
        const found = expect && (records.get(expect.key)?.revision ?? null);
        if (expect && found !== expect.revision) return "conflict";
        const goes = (key) => remove.includes(key) || removePrefix.some((it) => key.startsWith(it));
        for (const key of records.keys()) if (goes(key)) records.delete(key);
        for (const { key, value } of put) records.set(key, { value: value.slice(), revision });
        return "ok";
      }),
  };
}

/** A Standard Schema like Zod's: converts to JSON Schema, and validates itself. */
export const schemaOf = (jsonSchema, validate) => ({
  "~standard": { version: 1, vendor: "story", jsonSchema: { input: () => jsonSchema }, validate },
});

/** Makes attempts, each `[what, expected code, attempt]`, one after the other. Returns their results. */
export async function attemptsOn(count, attempts) {
  const rows = [];
  for (const [what, wanted, attempt] of attempts) {
    const before = count.commit;
    const got = await came(attempt);
    rows.push({ what, wanted, got: { ...got, commits: count.commit - before } });
  }
  return rows;
}

async function came(attempt) {
  try {
    return { answer: String(await attempt()) };
  } catch (error) {
    const { code, message = String(error), hint } = error ?? {};
    return { isOurs: error instanceof LockgateError, code, message, hint };
  }
}

/** With the testing build: a function that makes the engine of this process trap, and returns the thrown error. */
export async function trapOf(wasm) {
  const { loadEngine } = await import(wasm);
  const engine = await loadEngine(() =>
    assert.fail("the engine was not loaded by an agent before"),
  );
  return () => {
    const instance = engine.instance();
    try {
      instance.enter(() => instance.core.trap());
    } catch (error) {
      return error;
    }
    return assert.fail("the trap did not trap");
  };
}
