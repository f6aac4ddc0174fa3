// Tools of the packed package: whatever one does is a result that the model reads, and the call goes on.
import { story } from "./project.mjs";

story(
  "a tool that throws anything at all gives an error result, and the call ends well",
  async ({ createAgent, scriptedModel, tool, resultsIn, assert }) => {
    const hostile = new Proxy(new Error("never read"), {
      get: () => {
        throw new Error("not even this");
      },
      getPrototypeOf: () => {
        throw new Error("nor this");
      },
      has: () => {
        throw new Error("nor that");
      },
    });
    const thrown = {
      an_error: new Error("the disk is full"),
      a_string: "just words",
      an_empty_string: "",
      undefined: undefined,
      null: null,
      a_number: 5,
      a_symbol: Symbol("odd"),
      a_big_integer: 5n,
      an_object: { code: "OPTIONS", message: "looks like ours" },
      an_object_of_no_prototype: Object.create(null),
      a_function: () => {},
      a_proxy_whose_getters_throw: hostile,
      an_error_without_words: new Error(""),
    };
    const ways = {
      throws: (value) => () => {
        throw value;
      },
      rejects: (value) => async () => {
        throw value;
      },
      rejects_later: (value) => async () => {
        await null;
        throw value;
      },
    };
    for (const [way, wrap] of Object.entries(ways)) {
      const tools = Object.entries(thrown).map(([name, value]) =>
        tool({ name, description: "fails", inputSchema: { type: "object" }, execute: wrap(value) }),
      );
      const toolCalls = Object.keys(thrown).map((name, n) => ({
        name,
        input: {},
        id: `call-${n}`,
      }));
      const model = scriptedModel([{ toolCalls }, "Well, that went wrong."]);
      const agent = await createAgent({ name: "helper", model, tools });
      const reply = await agent.call("try", { sessionId: "s" });
      assert.equal(reply.text, "Well, that went wrong.");
      const results = resultsIn(model.requests[1].messages);
      assert.deepEqual(
        results.map(({ name }) => name),
        Object.keys(thrown),
        way,
      );
      for (const { name, state, output } of results) {
        assert.equal(state, "error", `${name} ${way}`);
        assert.ok(output[0].text.length > 0, `${name} ${way}: the model must have words to read`);
      }
      const words = Object.fromEntries(results.map(({ name, output }) => [name, output[0].text]));
      assert.match(words.an_error, /the disk is full/);
      assert.match(words.a_string, /just words/);
      assert.match(words.an_object, /looks like ours/);
      assert.deepEqual(resultsIn(await agent.history({ sessionId: "s" })), results);
    }
  },
);

story(
  "a tool that the model makes up is a result that names the tools there are",
  async ({ createAgent, scriptedModel, tool, lines, assert }) => {
    const clock = tool({
      name: "clock",
      description: "time",
      inputSchema: { type: "object" },
      execute: () => "noon",
    });
    const model = scriptedModel([{ toolCalls: [{ name: "klock", input: {} }] }, "Sorry."]);
    const agent = await createAgent({ name: "helper", model, tools: [clock] });
    await agent.call("time?", { sessionId: "s" });
    assert.match(lines(model.requests[1].messages)[2], /^error: .*klock.*clock/);
  },
);

story(
  "what a tool answers reaches the model without loss",
  async ({ createAgent, scriptedModel, tool, resultsIn, assert }) => {
    const cycle = { name: "loop" };
    cycle.self = cycle;
    const image = {
      type: "image",
      source: { type: "base64", mediaType: "image/png", data: "aGk=" },
    };
    const answers = {
      text: "plain words",
      empty_text: "",
      nothing: undefined,
      null: null,
      number: 42,
      boolean: false,
      not_a_number: NaN,
      infinity: [Infinity, -Infinity, -0],
      big_integer: { id: 9007199254740993n },
      object: { city: "Oslo", tags: ["a", "b"] },
      empty_list: [],
      list: [1, 2],
      date: new Date(0),
      function: () => 1,
      symbol: Symbol("odd"),
      image,
      text_and_image: [{ type: "text", text: "look" }, image],
      half_a_character: "\ud800 alone",
      cycle,
    };
    const tools = Object.entries(answers).map(([name, answer]) =>
      tool({
        name,
        description: "answers",
        inputSchema: { type: "object" },
        execute: () => answer,
      }),
    );
    const toolCalls = Object.keys(answers).map((name, n) => ({ name, input: {}, id: `call-${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools });
    assert.equal((await agent.call("go", { sessionId: "s" })).text, "Done.");
    const results = resultsIn(model.requests[1].messages);
    const text = (text) => [{ type: "text", text }];
    const { cycle: last, ...outputs } = Object.fromEntries(results.map((it) => [it.name, it]));
    assert.deepEqual(
      Object.fromEntries(Object.entries(outputs).map(([name, it]) => [name, it.output])),
      {
        text: text("plain words"),
        empty_text: text(""),
        nothing: text("Done."),
        null: text("null"),
        number: text("42"),
        boolean: text("false"),
        not_a_number: text('"NaN"'),
        infinity: text('["Infinity","-Infinity",0]'),
        big_integer: text('{"id":"9007199254740993"}'),
        object: text('{"city":"Oslo","tags":["a","b"]}'),
        empty_list: text("[]"),
        list: text("[1,2]"),
        date: text('"1970-01-01T00:00:00.000Z"'),
        function: text("() => 1"),
        symbol: text("Symbol(odd)"),
        image: [image],
        text_and_image: [{ type: "text", text: "look" }, image],
        half_a_character: text("\ufffd alone"),
      },
    );
    assert.ok(Object.values(outputs).every(({ state }) => state === "success"));
    assert.equal(last.state, "error");
    assert.match(last.output[0].text, /cannot be written as JSON/);
  },
);

story(
  "a schema's own validate has the last word, and execute gets what it made of the input",
  async ({ createAgent, scriptedModel, tool, schemaOf, resultsIn, assert }) => {
    const seen = [];
    const inputSchema = schemaOf(
      {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "number" } },
        required: ["city"],
      },
      (value) =>
        value.city === "Atlantis"
          ? {
              issues: [
                { message: "is under water", path: ["city"] },
                { message: "no forecast", path: [{ key: "days" }] },
              ],
            }
          : { value: { days: 3, ...value, city: value.city.trim() } },
    );
    const forecast = tool({
      name: "forecast",
      description: "the weather",
      inputSchema,
      execute: (input) => (seen.push(input), "rain"),
    });
    const toolCalls = [" Oslo ", "Atlantis"].map((city, n) => ({
      name: "forecast",
      input: { city },
      id: `call-${n}`,
    }));
    const model = scriptedModel([{ toolCalls }, "Rain."]);
    const agent = await createAgent({ name: "helper", model, tools: [forecast] });
    await agent.call("weather?", { sessionId: "s" });
    assert.deepEqual(seen, [{ days: 3, city: "Oslo" }]);
    const [oslo, atlantis] = resultsIn(model.requests[1].messages);
    assert.deepEqual([oslo.state, atlantis.state], ["success", "error"]);
    assert.match(atlantis.output[0].text, /city: is under water/);
    assert.match(atlantis.output[0].text, /days: no forecast/);
    assert.deepEqual(model.requests[0].tools[0].inputSchema.required, ["city"]);
  },
);

story(
  "a validate that waits or throws is waited for, and read by the model",
  async ({ createAgent, scriptedModel, tool, schemaOf, turns, resultsIn, assert }) => {
    const slow = schemaOf(
      { type: "object" },
      async () => (await turns(2), { value: { from: "validate" } }),
    );
    const broken = schemaOf({ type: "object" }, () => {
      throw new Error("the schema itself is broken");
    });
    const make = (name, inputSchema) =>
      tool({ name, description: "x", inputSchema, execute: (input) => input });
    const toolCalls = ["slow", "broken"].map((name, n) => ({ name, input: {}, id: `call-${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({
      name: "helper",
      model,
      tools: [make("slow", slow), make("broken", broken)],
    });
    await agent.call("go", { sessionId: "s" });
    const [first, second] = resultsIn(model.requests[1].messages);
    assert.equal(first.output[0].text, '{"from":"validate"}');
    assert.equal(second.state, "error");
    assert.match(second.output[0].text, /the schema itself is broken/);
  },
);

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
