// Many sessions and many calls at once, with the packed package: the counts are exact.
import { story } from "../support/project.mjs";

story(
  "a thousand sessions with ten calls each at once keep every turn, in order",
  async ({ createAgent, customModel, memoryStore, assert }) => {
    const model = customModel({
      id: "m",
      async *generate({ messages }) {
        yield { type: "text", text: `answer ${messages.length}` };
      },
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const calls = [];
    for (let n = 0; n < 10; n++) {
      for (let s = 0; s < 1_000; s++) calls.push(agent.call(`q${n}`, { sessionId: `s${s}` }));
    }
    await Promise.all(calls);
    for (let s = 0; s < 1_000; s++) {
      const said = (await agent.history({ sessionId: `s${s}` })).map(({ content }) => content[0].text);
      const expected = Array.from({ length: 10 }, (_, n) => [`q${n}`, `answer ${2 * n + 1}`]).flat();
      assert.deepEqual(said, expected, `session ${s}`);
    }
  },
);

story(
  "a thousand calls on one session, a hundred of them aborted, keep exactly the accepted inputs",
  async ({ createAgent, customModel, memoryStore, assert }) => {
    const model = customModel({
      id: "m",
      async *generate() {
        yield { type: "text", text: "ok" };
      },
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), queueLimit: 1_000 });
    const slot = { sessionId: "s" };
    const controllers = new Map();
    const calls = Array.from({ length: 1_000 }, (_, n) => {
      if (n % 10 !== 5) return agent.call(`q${n}`, slot);
      controllers.set(n, new AbortController());
      return agent.call(`q${n}`, { ...slot, signal: controllers.get(n).signal });
    });
    for (const controller of controllers.values()) controller.abort();
    const outcomes = await Promise.allSettled(calls);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    assert.equal(refused.length, 100);
    assert.ok(refused.every(({ reason }) => reason.code === "ABORTED"));
    const said = (await agent.history(slot, { limit: 3_000 })).map(({ content }) => content[0].text);
    const kept = Array.from({ length: 1_000 }, (_, n) => n).filter((n) => n % 10 !== 5);
    assert.deepEqual(said, kept.flatMap((n) => [`q${n}`, "ok"]));
  },
);

story(
  "W-06: a conversation larger than the cache is in memory once, even after many reads",
  async ({ createAgent, customModel, memoryStore, assert }) => {
    const { setFlagsFromString } = await import("node:v8");
    const { runInNewContext } = await import("node:vm");
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc");
    const model = customModel({
      id: "m",
      async *generate({ messages }) {
        yield { type: "text", text: `answer ${messages.length} `.padEnd(1_000, "-") };
      },
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), cache: { bytes: 50_000 } });
    const used = async (n) => {
      for (let call = 0; call < n; call++) await agent.call(`question ${call}`, { sessionId: "s" });
      await agent.drain();
      gc();
      return process.memoryUsage().heapUsed;
    };
    const before = await used(200);
    const after = await used(200);
    // Two hundred more turns take half a megabyte; a copy of everything for each call would take about a hundred.
    assert.ok(after - before < 8_000_000, `${after - before} bytes for 200 turns`);
  },
);
