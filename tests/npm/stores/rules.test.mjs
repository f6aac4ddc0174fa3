// The rules for stores in lockgate/testing, against stores with one flaw; and stores that fail according to a plan.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";
import { FLAWS, flawed } from "./flaws.mjs";
import { packedModule, story } from "../support/project.mjs";

const list = JSON.parse(fs.readFileSync(inRoot("src/store/backend/rules.json"), "utf8"));
const { memoryStore } = await packedModule("lockgate");
const { storeRules } = await packedModule("lockgate/testing");

const places = new WeakMap();

/** Stores with a flaw. Stores beside each other share one memory store. */
const makerOf = (flaw) => (beside) => {
  const place = places.get(beside) ?? memoryStore();
  const store = flawed(place, flaw);
  places.set(store, place);
  return store;
};

test("the package has every rule of the one list", () => {
  const names = storeRules(memoryStore).map(({ name }) => name);
  assert.deepEqual(
    names,
    list.map(({ rule }) => rule),
  );
});

test("a store without a flaw keeps every rule", async () => {
  for (const rule of storeRules(makerOf("none"))) {
    assert.equal(rule.skip, null);
    await rule.run();
  }
});

test("every rule fails on a store that breaks it", async () => {
  for (const [index, { rule, broken }] of list.entries()) {
    assert.ok(broken.length > 0, rule);
    for (const flaw of broken) {
      assert.ok(flaw in FLAWS, `there is no store that ${flaw}`);
      const attempt = storeRules(makerOf(flaw))[index].run();
      await assert.rejects(attempt, /breaks the rule/, `a store that ${flaw} keeps: ${rule}`);
    }
  }
});

test("every flaw is listed by a rule", () => {
  const named = new Set(list.flatMap(({ broken }) => broken));
  assert.deepEqual([...named].sort(), Object.keys(FLAWS).sort());
});

test("a rule is skipped only for a capability that the store declares as missing", async () => {
  const alone = storeRules(() => memoryStore()).filter(({ skip }) => skip !== null);
  assert.deepEqual(
    alone.map(({ skip }) => skip),
    ["the store is used by one process only", "the store is used by one process only"],
  );
  const lacking = () => {
    const { capabilities, ...rest } = memoryStore();
    return { ...rest, capabilities: { ...capabilities, atomic: false, compareAndSet: false } };
  };
  const needy = list.filter(({ needs = [] }) => needs.length > 0).map(({ rule }) => rule);
  const skipped = storeRules(lacking).filter(({ skip }) => skip !== null);
  assert.deepEqual(
    skipped.map(({ name }) => name),
    needy,
  );
  // If makeStore returns a promise, the reason to skip is known after the rule has run.
  const promised = storeRules(async () => memoryStore());
  assert.ok(promised.every(({ skip }) => skip === null));
  for (const rule of promised) await rule.run();
  assert.equal(promised.filter(({ skip }) => skip !== null).length, 2);
});

story(
  "a faulty store fails before, fails after, hangs and is late, as its plan says",
  async ({ faultyStore, memoryStore, turns, rejection, LockgateError, assert }) => {
    const inner = memoryStore();
    const seen = [];
    const plan = (operation, nth, batch) => {
      seen.push([operation, nth, batch?.revision]);
      if (operation === "list") return "hang";
      if (operation === "get") return { delayMs: 1 };
      return ["fail", "fail-after", "ok"][nth - 1];
    };
    const store = faultyStore(inner, plan);
    const batch = (revision) => ({
      revision,
      put: [{ key: "a/u/x", value: new Uint8Array([1]) }],
      remove: [],
    });
    const before = await rejection(store.commit(batch("r1")));
    assert.ok(before instanceof LockgateError);
    assert.equal(before.code, "STORE_UNAVAILABLE");
    assert.deepEqual(await inner.get(["a/u/x"]), [null]);
    assert.equal((await rejection(store.commit(batch("r2")))).code, "STORE_UNAVAILABLE");
    assert.equal((await inner.get(["a/u/x"]))[0].revision, "r2");
    assert.equal(await store.commit(batch("r3")), "ok");
    assert.equal((await store.get(["a/u/x"]))[0].revision, "r3");
    let answered = false;
    void store.list("a/").then(() => (answered = true));
    await turns(3);
    assert.equal(answered, false);
    assert.deepEqual(seen, [
      ["commit", 1, "r1"],
      ["commit", 2, "r2"],
      ["commit", 3, "r3"],
      ["get", 1, undefined],
      ["list", 1, undefined],
    ]);
  },
);

// S-12, S-03: any commit may fail, before or after it is applied, and the session stays complete and usable.
story(
  "if any commit of a session fails, no acknowledged turn is lost or doubled",
  async ({ createAgent, echo, memoryStore, faultyStore, lines, assert }) => {
    for (const fault of ["fail", "fail-after"]) {
      for (let failing = 1; failing <= 6; failing++) {
        const inner = memoryStore();
        const plan = (operation, nth) => (operation === "commit" && nth === failing ? fault : "ok");
        const store = faultyStore(inner, plan);
        const agent = await createAgent({ name: "helper", model: echo("to "), store });
        const acknowledged = [];
        for (const said of ["q1", "q2", "q3"]) {
          const done = await agent.call(said, { sessionId: "s" }).catch((error) => error);
          if (done.code === undefined) acknowledged.push(said);
          else assert.equal(done.code, "STORE_UNAVAILABLE");
        }
        const after = await createAgent({ name: "helper", model: echo("to "), store: inner });
        await after.call("last", { sessionId: "s" });
        const history = lines(await after.history({ sessionId: "s" }));
        for (const said of [...acknowledged, "last"]) {
          const at = history.indexOf(`user: ${said}`);
          assert.equal(history[at + 1], `assistant: to ${said}`, `${fault} ${failing}`);
          assert.equal(history.lastIndexOf(`user: ${said}`), at, `${fault} ${failing}: ${said} twice`);
        }
      }
    }
  },
);
