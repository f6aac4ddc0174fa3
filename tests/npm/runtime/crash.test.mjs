// A trap in the wasm, with the testing build: every open call is rejected, and the next call works.
import { story } from "../support/testing-build.mjs";

story(
  "a trap rejects every open call and task at once with ENGINE_CRASHED",
  async (
    { createAgent, modelOf, barrier, watched, rejection, trapOf, LockgateError, assert },
    { wasm },
  ) => {
    const reached = barrier(4);
    const model = modelOf(async function* (_request, { signal }) {
      const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
      reached();
      await stopped;
    });
    const { store } = watched();
    const agent = await createAgent({ name: "helper", model, store });
    const other = await createAgent({ name: "other", model, store });
    const trap = await trapOf(wasm);
    const calls = [
      agent.call("a secret question", { sessionId: "s1" }),
      agent.call("waiting behind it", { sessionId: "s1" }),
      agent.stream("elsewhere", { sessionId: "s2" }).result,
      other.call("another agent", { sessionId: "s1" }),
    ];
    await reached();
    const tasks = [
      agent.history({ sessionId: "s1" }),
      agent.listSessions(null),
      agent.getAgentState({ sessionId: "s1" }),
    ];
    const outcomes = [...calls, ...tasks].map(rejection);
    let turned = false;
    setImmediate(() => (turned = true));
    const direct = trap();
    const errors = await Promise.all(outcomes);
    assert.ok(!turned, "the calls were not rejected at once");
    for (const error of [direct, ...errors]) {
      assert.ok(error instanceof LockgateError);
      assert.equal(error.code, "ENGINE_CRASHED");
      assert.equal(error.status, 500);
      assert.ok(error.retryable);
      assert.match(error.hint, /try again/);
      assert.match(error.message, /src\/wasm\/task\.rs:\d+/);
      const words = JSON.stringify([error.message, error.hint, String(error.cause)]);
      assert.doesNotMatch(words, /secret|waiting|elsewhere|a trap was asked for/);
    }
  },
);

story(
  "after a trap the same agent answers, and keeps the question that was cut off",
  async ({ createAgent, endless, rejection, trapOf, lines, assert }, { wasm }) => {
    const { model, reached } = endless("here I am");
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s", userId: "alice" };
    const call = agent.call("precious question", slot);
    const waiting = agent.call("never accepted", slot);
    const outcomes = [rejection(call), rejection(waiting)];
    await reached;
    (await trapOf(wasm))();
    for (const error of await Promise.all(outcomes)) assert.equal(error.code, "ENGINE_CRASHED");
    const reply = await agent.call("Are you there?", slot);
    assert.equal(reply.text, "here I am");
    const history = await agent.history(slot);
    const said = lines(history);
    assert.equal(said[0], "user: precious question");
    assert.match(said[1], /^user: .*cut off/);
    assert.equal(history[1].name, "system");
    assert.deepEqual(said.slice(2), ["user: Are you there?", "assistant: here I am"]);
    assert.deepEqual(lines((await agent.getAgentState(slot)).context), said);
    assert.equal((await agent.listSessions("alice")).length, 1);
  },
);

story(
  "a loop over a call throws ENGINE_CRASHED after the error event",
  async ({ createAgent, endless, refusal, trapOf, assert }, { wasm }) => {
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("hello", { sessionId: "s" });
    const events = [];
    const thrown = refusal(async () => {
      for await (const event of call) events.push(event);
    });
    await reached;
    (await trapOf(wasm))();
    assert.equal((await thrown).code, "ENGINE_CRASHED");
    assert.equal(events.at(-1).type, "error");
    assert.equal(events.at(-1).error.code, "ENGINE_CRASHED");
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index),
    );
    call.stop("too late");
    assert.equal((await agent.call("again", { sessionId: "s" })).reason, "stop");
  },
);

story(
  "a tool that runs during a trap may still emit and return without any effect",
  async ({ createAgent, scriptedModel, tool, signpost, rejection, trapOf, assert }, { wasm }) => {
    const [begun, gate, ended] = [signpost(), signpost(), signpost()];
    const slow = tool({
      name: "slow",
      description: "waits",
      inputSchema: { type: "object" },
      async execute(_input, { emit }) {
        begun.pass();
        await gate.passed;
        emit("still here");
        queueMicrotask(ended.pass);
        return "done";
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "slow", input: {} }] }, "Fine."]);
    const agent = await createAgent({ name: "helper", model, tools: [slow] });
    const outcome = rejection(agent.call("go", { sessionId: "s" }));
    await begun.passed;
    (await trapOf(wasm))();
    assert.equal((await outcome).code, "ENGINE_CRASHED");
    gate.pass();
    await ended.passed;
    assert.equal((await agent.call("again", { sessionId: "s" })).text, "Fine.");
  },
);

story(
  "fifty traps in a row lose no question and leave nothing broken",
  async ({ createAgent, modelOf, signpost, rejection, trapOf, lines, assert }, { wasm }) => {
    let reached = signpost();
    let answering = false;
    const model = modelOf(async function* (_request, { signal }) {
      if (answering) return yield { type: "text", text: "at last" };
      const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
      reached.pass();
      await stopped;
    });
    const agent = await createAgent({ name: "helper", model });
    const trap = await trapOf(wasm);
    for (let n = 0; n < 50; n++) {
      reached = signpost();
      const outcome = rejection(agent.call(`q${n}`, { sessionId: "s" }));
      await reached.passed;
      trap();
      assert.equal((await outcome).code, "ENGINE_CRASHED", `trap ${n}`);
    }
    answering = true;
    assert.equal((await agent.call("and now?", { sessionId: "s" })).text, "at last");
    const asked = lines(await agent.history({ sessionId: "s" })).filter((it) =>
      /^user: (q\d|and)/.test(it),
    );
    assert.deepEqual(asked, [
      ...Array.from({ length: 50 }, (_, n) => `user: q${n}`),
      "user: and now?",
    ]);
  },
);

story(
  "a trap while no call is open affects no call",
  async ({ createAgent, echo, trapOf, assert }, { wasm }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    await agent.call("before", { sessionId: "s" });
    (await trapOf(wasm))();
    assert.equal((await agent.history({ sessionId: "s" })).length, 2);
    assert.equal((await agent.call("after", { sessionId: "s" })).text, "you said after");
    assert.equal((await agent.history({ sessionId: "s" })).length, 4);
  },
);

story(
  "a trap tells the models and tools that were running to stop",
  async ({ createAgent, modelOf, tool, signpost, rejection, trapOf, assert }, { wasm }) => {
    const [begun, stopped] = [
      [signpost(), signpost()],
      [signpost(), signpost()],
    ];
    const waitFor = async (signal, n) => {
      signal.addEventListener("abort", stopped[n].pass);
      begun[n].pass();
      await stopped[n].passed;
    };
    const wait = tool({
      name: "wait",
      description: "waits",
      inputSchema: { type: "object" },
      execute: (_input, { signal }) => waitFor(signal, 0),
    });
    const model = modelOf(async function* ({ messages }, { signal }) {
      if (messages[0].content[0].text === "think") await waitFor(signal, 1);
      else yield { type: "tool-call", index: 0, name: "wait", arguments: "{}" };
    });
    const agent = await createAgent({ name: "helper", model, tools: [wait] });
    const outcomes = ["act", "think"].map((input) =>
      rejection(agent.call(input, { sessionId: input })),
    );
    await Promise.all(begun.map(({ passed }) => passed));
    (await trapOf(wasm))();
    for (const error of await Promise.all(outcomes)) assert.equal(error.code, "ENGINE_CRASHED");
    await Promise.all(stopped.map(({ passed }) => passed));
  },
);

// V-01
story(
  "ENGINE_CRASHED has the exception that ended the engine as its cause, with its stack, on every path",
  async ({ createAgent, memoryStore, echo, endless, rejection, readAll, refusal, trapOf, LockgateError, assert }, { wasm }) => {
    const { loadEngine } = await import(wasm);
    // A panic: the calls that run, tasks, a loop over events, and the code that trapped.
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const running = agent.stream("hello", { sessionId: "s" });
    const loop = refusal(() => readAll(running));
    await reached;
    const trap = await trapOf(wasm);
    const tasks = [running.result, agent.history({ sessionId: "s" }), agent.call("behind it", { sessionId: "s" })].map(rejection);
    const direct = trap();
    for (const error of [direct, await loop, ...(await Promise.all(tasks))]) {
      assert.equal(error.code, "ENGINE_CRASHED");
      assert.ok(error.cause instanceof WebAssembly.RuntimeError);
      assert.equal(error.cause, direct.cause);
      assert.match(error.cause.stack, /wasm/);
      assert.match(error.message, /^the engine crashed at src\/wasm\/task\.rs:\d+ \(RuntimeError: unreachable\) and was restarted$/);
    }
    // A callback that nobody could catch.
    const second = endless();
    const other = await createAgent({ name: "helper", model: second.model, store: memoryStore() });
    const call = rejection(other.call("hello", { sessionId: "s" }));
    await second.reached;
    const engine = await loadEngine(() => assert.fail("the engine was not loaded"));
    engine.instance().core.trapLater();
    assert.ok((await call).cause instanceof WebAssembly.RuntimeError);
    // Whatever a function of the host throws through the wasm, of any type.
    const random = crypto.getRandomValues;
    const own = new LockgateError("OPTIONS", "an error of ours");
    for (const thrown of [new TypeError("no randomness"), "only a text", undefined, null, own]) {
      const fresh = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
      engine.instance();
      assert.ok(await rejection(Promise.reject(trap())));
      crypto.getRandomValues = () => {
        throw thrown;
      };
      const error = await rejection(fresh.call("hello", { sessionId: "s" }));
      crypto.getRandomValues = random;
      assert.equal(error.code, "ENGINE_CRASHED", String(thrown));
      if (thrown === undefined || thrown === null) assert.match(error.cause.message, new RegExp(`something threw ${thrown}`));
      else assert.equal(error.cause, thrown);
      assert.doesNotMatch(error.message, /randomness|only a text|error of ours/);
      assert.equal((await fresh.call("hello", { sessionId: "s" })).text, "you said hello");
    }
  },
);
