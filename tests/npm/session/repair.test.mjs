// Sessions with unreadable records, and refused stores: each error says what to do.
import { story } from "../support/project.mjs";

// S-06
story(
  "a session with an unreadable head is repaired from its log, and the unreadable bytes are kept",
  async ({ createAgent, echo, memoryStore, lines, rejection, assert }) => {
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model: echo("to "), store });
    const slot = { sessionId: "s1", userId: "alice" };
    await agent.call("one", slot);
    const { key } = (await store.list("")).find(({ key }) => key.endsWith("/head"));
    const torn = new TextEncoder().encode('{"format":1,');
    await store.commit({ revision: "x.9.x", put: [{ key, value: torn }], remove: [] });
    const refused = await rejection(agent.call("two", slot));
    assert.equal(refused.code, "STORE_CORRUPT");
    assert.match(refused.hint, /repairSession/);
    const info = await agent.repairSession(slot);
    assert.deepEqual([info.title, info.messages], ["one", 2]);
    await agent.call("two", slot);
    assert.deepEqual(lines(await agent.history(slot)), [
      "user: one",
      "assistant: to one",
      "user: two",
      "assistant: to two",
    ]);
    const [kept] = (await store.list("")).filter(({ key }) => key.includes("/quarantine/"));
    assert.deepEqual(kept.value, torn);
  },
);

// S-07
story(
  "a session of a newer version is read and not changed",
  async ({ createAgent, echo, memoryStore, lines, rejection, assert }) => {
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model: echo("to "), store });
    const slot = { sessionId: "s1" };
    await agent.call("one", slot);
    const { key, value } = (await store.list("")).find(({ key }) => key.endsWith("/head"));
    const head = { ...JSON.parse(new TextDecoder().decode(value)), format: 2, mood: "new" };
    const newer = new TextEncoder().encode(JSON.stringify(head));
    await store.commit({ revision: "x.9.x", put: [{ key, value: newer }], remove: [] });
    assert.equal((await agent.getAgentState(slot)).format, 2);
    assert.equal(lines(await agent.history(slot)).length, 2);
    const changes = ["clearContext", "repairSession", "deleteSession"];
    for (const attempt of [() => agent.call("two", slot), ...changes.map((it) => () => agent[it](slot))]) {
      assert.equal((await rejection(attempt())).code, "STATE_VERSION");
    }
    assert.deepEqual((await store.get([key]))[0].value, newer);
  },
);

// S-09
story(
  "a store with small cells keeps large sessions, and its cells stay small",
  async ({ createAgent, echo, mapStore, lines, rejection, assert }) => {
    const inner = mapStore();
    let largest = 0;
    const store = {
      ...inner,
      capabilities: { ...inner.capabilities, maxValueBytes: 1_000 },
      commit(batch) {
        for (const { value } of batch.put) largest = Math.max(largest, value.length);
        return inner.commit(batch);
      },
    };
    const agent = await createAgent({ name: "helper", model: echo(""), store });
    const slot = { sessionId: "s1" };
    const long = "é".repeat(20_000);
    await agent.call(long, slot);
    assert.deepEqual(lines(await agent.history(slot)), [`user: ${long}`, `assistant: ${long}`]);
    assert.ok(largest > 900 && largest <= 1_000, `a cell had ${largest} bytes`);
    const refused = await rejection(agent.call("x".repeat(1_100_000), slot));
    assert.equal(refused.code, "STATE_TOO_LARGE");
    await agent.deleteSession(slot);
    const left = (await inner.list("")).filter(({ key }) => !key.includes("/head"));
    assert.deepEqual(left, []);
  },
);

// S-18
story(
  "a store that could lose turns is refused with a hint about what to use instead",
  async ({ createAgent, echo, memoryStore, localStorageStore, rejection, assert }) => {
    const inner = memoryStore();
    const able = (change) => ({ ...inner, capabilities: { ...inner.capabilities, ...change } });
    const refused = {
      "all or nothing": able({ atomic: false }),
      "compareAndSet": able({ shared: "cluster", compareAndSet: false }),
      "Redis, MySQL or files": able({ shared: "host", compareAndSet: false }),
      "maxValueBytes is at least 64": able({ maxValueBytes: 10 }),
    };
    if (globalThis.navigator?.locks === undefined) refused["crossTab: false"] = localStorageStore();
    for (const [hint, store] of Object.entries(refused)) {
      const error = await rejection(createAgent({ name: "helper", model: echo(), store }));
      assert.equal(error.code, "OPTIONS");
      assert.ok(error.hint.includes(hint), `${hint}: ${error.hint}`);
    }
  },
);

story(
  "a memory store is named in the report always, and in a warning if the user did not choose it",
  async ({ createAgent, echo, memoryStore, readAll, assert }) => {
    const warningsOf = async (options) => {
      const agent = await createAgent({ name: "helper", model: echo(), ...options });
      const report = await agent.storage();
      const slots = ["s1", "s2"].map((sessionId) => ({ sessionId }));
      const events = [];
      for (const slot of slots) events.push(...(await readAll(agent.stream("hello", slot))));
      return { report, said: events.filter(({ code }) => code === "storage").length };
    };
    const chosen = await warningsOf({ store: memoryStore() });
    assert.equal(chosen.report.durability, "memory-only");
    assert.equal(chosen.report.crossTab, false);
    assert.deepEqual([chosen.report.usage, chosen.report.quota], [null, null]);
    assert.match(chosen.report.warnings[0], /memory only/);
    assert.equal(chosen.said, 0);
    const kept = { ...memoryStore(), name: "disk" };
    kept.capabilities = { ...kept.capabilities, durability: "disk", evictable: false, shared: "cluster" };
    const disk = await warningsOf({ store: kept });
    assert.deepEqual([disk.report.durability, disk.report.warnings, disk.said], ["durable", [], 0]);
  },
);
