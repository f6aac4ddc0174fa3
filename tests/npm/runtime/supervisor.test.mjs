// The supervisor of the wasm: traps that no caller can catch, lost tasks, and memory that runs out or only grows.
import { at, story } from "../support/testing-build.mjs";

story(
  "V-02: a trap in a timer callback, which no caller could catch, rejects all open calls and ends no process",
  async ({ createAgent, endless, rejection, lines, assert }, { wasm }) => {
    const uncaught = [];
    process.on("uncaughtException", (error) => uncaught.push(error));
    const { model, reached } = endless("here I am");
    const agent = await createAgent({ name: "helper", model });
    const { loadEngine } = await import(wasm);
    const instance = (await loadEngine(() => assert.fail("no engine was loaded"))).instance();
    const outcomes = [agent.call("one", { sessionId: "s" }), agent.call("two", { sessionId: "s" })].map(rejection);
    await reached;
    const started = performance.now();
    instance.enter(() => instance.core.trapLater());
    for (const error of await Promise.all(outcomes)) assert.equal(error.code, "ENGINE_CRASHED");
    assert.ok(performance.now() - started < 1_000, "it took over a second");
    assert.equal((await agent.call("three", { sessionId: "s" })).text, "here I am");
    assert.equal(lines(await agent.history({ sessionId: "s" }))[0], "user: one");
    assert.deepEqual(uncaught, []);
  },
);

story(
  "V-02: a trap inside a future, during a store request, rejects all open calls and ends no process",
  async ({ createAgent, echo, watched, rejection, trapOf, assert }, { wasm }) => {
    let isArmed = false;
    let trap;
    const { store } = watched({
      get(_keys, next) {
        if (isArmed) trap((isArmed = false));
        return next();
      },
    });
    const agent = await createAgent({ name: "helper", model: echo(), store });
    trap = await trapOf(wasm);
    await agent.call("before", { sessionId: "s" });
    isArmed = true;
    const errors = await Promise.all([agent.call("during", { sessionId: "s" }), agent.history({ sessionId: "s" })].map(rejection));
    for (const error of errors) assert.equal(error.code, "ENGINE_CRASHED");
    assert.equal((await agent.call("after", { sessionId: "s" })).text, "you said after");
  },
);

story(
  "V-02: the watchdog polls a task again whose waker was lost",
  async ({ createAgent, echo, assert }, { wasm }) => {
    const rings = [];
    const { setInterval: real } = globalThis;
    globalThis.setInterval = (ring, ms) => (rings.push({ ring, ms }), real(() => {}, 1_000_000).unref());
    const agent = await createAgent({ name: "helper", model: echo() });
    const { loadEngine } = await import(wasm);
    const instance = (await loadEngine(() => assert.fail("no engine was loaded"))).instance();
    let polls = 0;
    const over = new Promise((resolve, reject) => {
      // The task waits, and nothing will ever wake it.
      instance.drive(4_000_000, { poll: () => ++polls === 2 && (resolve(), true), crashed: reject });
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([polls, rings.length], [1, 1]);
    assert.ok(rings[0].ms <= 60_000);
    rings[0].ring();
    await over;
    assert.equal((await agent.call("still here", { sessionId: "s" })).text, "you said still here");
  },
);

story(
  "V-04: if memory cannot grow, open calls reject with ENGINE_CRASHED and the next call works",
  async ({ init, createAgent, memoryStore, echo, rejection, lines, assert }, { core }) => {
    const fs = await import("node:fs");
    const bytes = fs.readFileSync(new URL(core));
    const { capped } = await import("./memory-limit.mjs");
    await init(capped(bytes, 128));
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
    await agent.call("small", { sessionId: "s" });
    const [other, large] = [agent.call("beside it", { sessionId: "t" }), agent.call("x".repeat(6_000_000), { sessionId: "s" })].map((call) =>
      call.catch((error) => error),
    );
    const error = await large;
    assert.equal(error.code, "ENGINE_CRASHED");
    assert.ok(error.retryable);
    const beside = await other;
    assert.ok(beside.code === "ENGINE_CRASHED" || beside.text === "you said beside it");
    assert.equal((await agent.call("small again", { sessionId: "s" })).text, "you said small again");
    assert.equal(lines(await agent.history({ sessionId: "s" }))[0], "user: small");
    const again = await rejection(agent.call("y".repeat(6_000_000), { sessionId: "s" }));
    assert.equal(again.code, "ENGINE_CRASHED");
    assert.equal((await agent.call("and again", { sessionId: "s" })).text, "you said and again");
  },
  { entry: "entry/slim.js", core: at("core.wasm") },
);

story(
  "V-05: an instance that has grown over the limit is replaced when it has no open call, and its memory is freed",
  async ({ createAgent, memoryStore, echo, lines, assert }, { wasm }) => {
    const [{ setFlagsFromString }, { runInNewContext }] = [await import("node:v8"), await import("node:vm")];
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
    const { loadEngine } = await import(wasm);
    const engine = await loadEngine(() => assert.fail("no engine was loaded"));
    const first = engine.instance();
    const memory = new WeakRef(first.core.initSync({}).memory);
    const kept = agent.stream("large: " + "x".repeat(12_000_000), { sessionId: "large" });
    await kept.result;
    await agent.drain();
    assert.ok(!first.alive, `the first instance of ${first.bytes} bytes is still in use`);
    // A call, an agent and the instance are still referenced, but none of them keeps the memory alive.
    for (let n = 0; n < 20 && memory.deref() !== undefined; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    assert.equal(memory.deref(), undefined, "the memory was not freed");
    assert.equal((await agent.call("and now?", { sessionId: "large" })).text, "you said and now?");
    assert.ok(engine.instance() !== first && first.bytes === 0 && kept.id !== "");
    assert.equal(lines(await agent.history({ sessionId: "large" })).length, 4);
  },
);

story(
  "V-05: an instance of any size is not replaced while it has an unsaved turn",
  async ({ createAgent, memoryStore, faultyStore, echo, rejection, assert }, { wasm }) => {
    let fails = false;
    const store = faultyStore(memoryStore(), (operation) => (fails && operation === "commit" ? "fail" : "ok"));
    const slow = echo();
    const agent = await createAgent({ name: "helper", model: slow, store });
    const { loadEngine } = await import(wasm);
    const engine = await loadEngine(() => assert.fail("no engine was loaded"));
    await agent.call("before", { sessionId: "s" });
    const first = engine.instance();
    const call = agent.stream("kept in memory " + "x".repeat(12_000_000), { sessionId: "s", callId: "c" });
    for await (const event of call) {
      if (event.type === "accepted") fails = true;
      if (event.type === "call-end") assert.fail("it was saved");
      if (event.type === "error") break;
    }
    assert.equal((await rejection(call.result)).code, "STORE_UNAVAILABLE");
    assert.ok(first.alive && engine.instance() === first, "the instance was replaced");
    fails = false;
    // The question was accepted, so it is shown; the answer is only in memory.
    assert.equal((await agent.history({ sessionId: "s" })).length, 3);
    await agent.call("again", { sessionId: "s" });
    assert.equal((await agent.history({ sessionId: "s" })).length, 6);
  },
);

story(
  "a shut down agent stays shut down after a trap",
  async ({ createAgent, echo, rejection, trapOf, assert }, { wasm }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    await agent.call("before", { sessionId: "s" });
    await agent.shutdown();
    (await trapOf(wasm))();
    assert.equal((await rejection(agent.call("after", { sessionId: "s" }))).code, "SHUTTING_DOWN");
  },
);

story(
  "V-08: bytes that cross the border while the memory grows arrive unchanged",
  async ({ createAgent, modelOf, mapStore, tool, textOf, assert }) => {
    const { createHash } = await import("node:crypto");
    const hash = (text) => createHash("sha256").update(text).digest("hex");
    const pieces = Array.from({ length: 12 }, (_, n) => String.fromCodePoint(0x1f600 + n).repeat(40_000 << (n >> 1)));
    const seen = [];
    const give = tool({
      name: "give",
      description: "Gives a piece.",
      inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
      execute: ({ n }) => pieces[n],
    });
    const model = modelOf(async function* ({ messages }) {
      const last = messages.at(-1);
      const [result] = last.content.filter(({ type }) => type === "tool_result");
      if (result === undefined) return yield { type: "tool-call", index: 0, name: "give", arguments: textOf(last) };
      seen.push(hash(textOf(result.output)));
      yield { type: "text", text: textOf(result.output) };
    });
    const agent = await createAgent({ name: "helper", model, tools: [give], store: mapStore() });
    for (const n of pieces.keys()) {
      const { text } = await agent.call(JSON.stringify({ n }), { sessionId: `s${n % 3}` });
      assert.equal(hash(text), hash(pieces[n]), `piece ${n}`);
    }
    assert.deepEqual(seen, pieces.map(hash));
  },
);
