// Tools of the packed package at work: what they are told, beside whom they run, and how they are stopped.
import { story } from "./project.mjs";

story(
  "what a tool emits is seen while it runs",
  async ({ createAgent, scriptedModel, tool, signpost, assert }) => {
    const [begun, seen] = [signpost(), signpost()];
    const count = tool({
      name: "count",
      description: "counts",
      inputSchema: { type: "object" },
      async execute(_input, { emit }) {
        emit("one ");
        begun.pass();
        await seen.passed;
        emit("two");
        return "counted";
      },
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "count", input: {}, id: "call-1" }] },
      "Done.",
    ]);
    const agent = await createAgent({ name: "helper", model, tools: [count] });
    const shown = [];
    for await (const event of agent.stream("go", { sessionId: "s" })) {
      if (!["tool-start", "tool-delta", "tool-end"].includes(event.type)) continue;
      assert.equal(event.toolCallId, "call-1");
      shown.push(event.delta ?? event.type);
      if (event.delta === "one ") seen.pass();
    }
    await begun.passed;
    assert.deepEqual(shown, ["tool-start", "one ", "two", "tool-end"]);
  },
);

story(
  "a tool is told whose call it serves",
  async ({ createAgent, scriptedModel, tool, assert }) => {
    let told;
    const spy = tool({
      name: "spy",
      description: "looks",
      inputSchema: { type: "object" },
      execute: (input, context) => ((told = { input, context }), "seen"),
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "spy", input: { a: [1, { b: null }] }, id: "call-7" }] },
      "Done.",
    ]);
    const agent = await createAgent({ name: "helper", model, tools: [spy] });
    const attributes = { db: new Map() };
    const slot = { sessionId: "s", userId: "alice" };
    const reply = await agent.call("go", { ...slot, callId: "mine", attributes });
    const { input, context } = told;
    assert.deepEqual(input, { a: [1, { b: null }] });
    const { sessionId, userId, callId, toolCallId } = context;
    assert.deepEqual(
      { sessionId, userId, callId, toolCallId },
      { ...slot, callId: reply.callId, toolCallId: "call-7" },
    );
    assert.equal(callId, "mine");
    assert.equal(context.attributes.db, attributes.db);
    assert.ok(context.signal instanceof AbortSignal && !context.signal.aborted);
    assert.ok(Object.isFrozen(context));
    context.emit("long after its end this changes nothing");
  },
);

story(
  "tools run side by side, and their results are in the order of the calls",
  async ({ createAgent, scriptedModel, tool, signpost, resultsIn, assert }) => {
    const ended = [];
    const gates = [signpost(), signpost(), signpost()];
    const wait = tool({
      name: "wait",
      description: "waits",
      inputSchema: { type: "object" },
      async execute({ n }) {
        // Each lets the one before it go on: run one after the other they would wait for ever.
        if (n > 0) gates[n - 1].pass();
        else gates[2].passed.then(() => {});
        if (n < 2) await gates[n].passed;
        ended.push(n);
        return `result ${n}`;
      },
    });
    const toolCalls = [0, 1, 2].map((n) => ({ name: "wait", input: { n }, id: `call-${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: [wait] });
    await agent.call("go", { sessionId: "s" });
    const results = resultsIn(model.requests[1].messages);
    assert.deepEqual(
      results.map(({ id }) => id),
      ["call-0", "call-1", "call-2"],
    );
    assert.deepEqual(
      results.map(({ output }) => output[0].text),
      ["result 0", "result 1", "result 2"],
    );
    assert.deepEqual([...ended].sort(), [0, 1, 2]);
  },
);

story(
  "a tool that is not parallel runs alone",
  async ({ createAgent, scriptedModel, tool, turns, assert }) => {
    let inside = 0;
    const order = [];
    const alone = tool({
      name: "alone",
      description: "writes",
      inputSchema: { type: "object" },
      parallel: false,
      async execute({ n }) {
        assert.equal(++inside, 1);
        await turns(3 - n);
        order.push(n);
        inside -= 1;
        return "ok";
      },
    });
    const toolCalls = [0, 1, 2].map((n) => ({ name: "alone", input: { n }, id: `call-${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: [alone] });
    await agent.call("go", { sessionId: "s" });
    assert.deepEqual(order, [0, 1, 2]);
  },
);

story(
  "a call that is stopped tells its tool, and the model later reads that it was stopped",
  async ({ createAgent, scriptedModel, tool, signpost, readAll, resultsIn, assert }) => {
    const begun = signpost();
    let signal;
    const sleep = tool({
      name: "sleep",
      description: "sleeps",
      inputSchema: { type: "object" },
      async execute(_input, context) {
        signal = context.signal;
        const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
        begun.pass();
        await stopped;
        throw signal.reason;
      },
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "sleep", input: {}, id: "call-1" }] },
      "Awake.",
    ]);
    const agent = await createAgent({ name: "helper", model, tools: [sleep] });
    const call = agent.stream("sleep", { sessionId: "s" });
    const read = readAll(call);
    await begun.passed;
    call.stop("Wake up!");
    assert.equal((await call.result).reason, "interrupted");
    assert.ok(signal.aborted);
    await agent.call("Are you awake?", { sessionId: "s" });
    const { messages } = model.requests[1];
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["user", "assistant", "tool", "user", "user"],
    );
    const [result] = resultsIn(messages);
    assert.equal(result.state, "interrupted");
    assert.match(result.output[0].text, /stopped/);
    const end = (await read).find(({ type }) => type === "tool-end");
    assert.deepEqual(
      { state: end.state, output: end.output },
      { state: result.state, output: result.output },
    );
  },
);

story(
  "a tool that takes too long is stopped and read about",
  async ({ createAgent, scriptedModel, tool, resultsIn, assert }) => {
    const slow = tool({
      name: "slow",
      description: "never ends",
      inputSchema: { type: "object" },
      timeoutMs: 1,
      execute: (_input, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "slow", input: {} }] }, "Too slow."]);
    const agent = await createAgent({ name: "helper", model, tools: [slow] });
    assert.equal((await agent.call("go", { sessionId: "s" })).text, "Too slow.");
    const [{ state, output }] = resultsIn(model.requests[1].messages);
    assert.equal(state, "error");
    assert.match(output[0].text, /within 1 ms/);
  },
);

story(
  "a tool may call another session of its own agent",
  async ({ createAgent, modelOf, tool, textOf, resultsIn, assert }) => {
    let agent;
    const ask = tool({
      name: "ask",
      description: "asks elsewhere",
      inputSchema: { type: "object" },
      execute: async () => (await agent.call("what is it?", { sessionId: "inner" })).text,
    });
    const model = modelOf(async function* ({ messages }) {
      if (textOf(messages[0]) === "what is it?") yield { type: "text", text: "an answer" };
      else if (messages.length === 1)
        yield { type: "tool-call", index: 0, id: "call-1", name: "ask", arguments: "{}" };
      else yield { type: "text", text: `it is ${textOf(resultsIn(messages)[0].output)}` };
    });
    agent = await createAgent({ name: "helper", model, tools: [ask] });
    assert.equal((await agent.call("go", { sessionId: "outer" })).text, "it is an answer");
    assert.equal((await agent.history({ sessionId: "inner" })).length, 2);
  },
);

story(
  "tools are asked no more often than maxIterations allows",
  async ({ createAgent, modelOf, tool, assert }) => {
    let runs = 0;
    const again = tool({
      name: "again",
      description: "x",
      inputSchema: { type: "object" },
      execute: () => `${++runs}`,
    });
    const model = modelOf(async function* ({ tools }) {
      if (tools.length === 0) yield { type: "text", text: "I stop here." };
      else yield { type: "tool-call", index: 0, name: "again", arguments: "{}" };
    });
    const agent = await createAgent({ name: "helper", model, tools: [again], maxIterations: 3 });
    const reply = await agent.call("go", { sessionId: "s" });
    assert.equal(reply.reason, "max-iterations");
    assert.equal(reply.text, "I stop here.");
    assert.equal(runs, 3);
  },
);
