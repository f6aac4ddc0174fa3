// Inputs and return values of tools in the packed package: every return value becomes a result that the model reads.
import { story } from "../support/project.mjs";

story(
  "V-06, T-05: a tool that throws any value gives an error result, and the call ends normally",
  async ({ createAgent, memoryStore, scriptedModel, tool, resultsIn, assert }) => {
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
      const agent = await createAgent({ name: "helper", store: memoryStore(), model, tools });
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
        assert.ok(output[0].text.length > 0, `${name} ${way}: the result has no text`);
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
  "a call of a tool that does not exist gets a result with the names of the existing tools",
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
  "V-11: the return value of a tool reaches the model without loss",
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
        big_integer: text('{"id":9007199254740993}'),
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
  "the schema's validate function decides, and execute gets its output",
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
  "an asynchronous validate is awaited, and the model reads the error of a validate that throws",
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
  "T-05: a key that an error quotes is neither sent to the model nor stored",
  async ({ createAgent, memoryStore, scriptedModel, tool, resultsIn, textOf, assert }) => {
    const key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    const leaky = tool({
      name: "leaky",
      description: "l",
      inputSchema: { type: "object" },
      execute: () => {
        throw new Error(`401: Incorrect API key provided: ${key}. Try another.`);
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "leaky", input: {} }] }, "I see"]);
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model, tools: [leaky], store });
    await agent.call("go", { sessionId: "s" });
    const [result] = resultsIn(await agent.history({ sessionId: "s" }));
    assert.equal(result.state, "error");
    assert.match(textOf(result.output), /Incorrect API key provided.*Try another/);
    const stored = (await store.list("")).map(({ value }) => new TextDecoder().decode(value)).join("");
    for (const place of [stored, JSON.stringify(model.requests)]) assert.ok(!place.includes(key), "the key was stored or sent");
  },
);

story(
  "a result cannot forge a number: a text stays a text, whatever it looks like, and a BigInt keeps its digits",
  async ({ createAgent, memoryStore, scriptedModel, tool, outcomesOf, assert }) => {
    const forged = ["\0integer:5", 'x"\0integer:5', "\\u0000integer:5", '"\\u0000integer:5"', "integer:5", '"integer-1-"'];
    const answers = {
      object: { forged, ["\0integer:5"]: "\0integer:6", n: 2n ** 63n },
      list: [...forged, 9007199254740993n, -(2n ** 70n)],
      text: forged[0],
      bare: 2n ** 64n,
      block: { type: "text", text: "t", note: "\0integer:5" },
    };
    const seen = [];
    const look = tool({ name: "look", description: "Looks.", inputSchema: { type: "object" }, execute: (input) => void seen.push(input) });
    const tools = Object.entries(answers).map(([name, answer]) => tool({ name, description: name, inputSchema: { type: "object" }, execute: () => answer }));
    const use = (name, input = {}) => ({ toolCalls: [{ name, input }] });
    const model = scriptedModel([...Object.keys(answers).map((name) => use(name)), use("look", { forged, ["\0integer:5"]: 1 }), "done"]);
    const agent = await createAgent({ name: "helper", model, tools: [...tools, look], store: memoryStore() });
    const reply = await agent.call("go", { sessionId: "s" });
    const [object, list, text, bare, block] = outcomesOf(reply);
    const exact = (json) => json.replace(/:9223372036854775808/, ':"2^63"').replace("9007199254740993", '"2^53+1"').replace("-1180591620717411303424", '"-2^70"');
    assert.deepEqual(JSON.parse(exact(object)), { ...answers.object, n: "2^63" });
    assert.deepEqual(JSON.parse(exact(list)), [...forged, "2^53+1", "-2^70"]);
    assert.deepEqual([text, bare, block], [forged[0], "18446744073709551616", "t"]);
    assert.deepEqual(seen, [{ forged, ["\0integer:5"]: 1 }]);
    const { context } = await agent.getAgentState({ sessionId: "s" });
    const calls = context.flatMap(({ content }) => content).filter(({ type }) => type === "tool_use");
    assert.deepEqual(calls.at(-1).input, { forged, ["\0integer:5"]: 1 });
    const schema = { type: "object", properties: { s: { type: "string" } } };
    const output = { s: "\0integer:5" };
    const teller = await createAgent({ name: "teller", model: scriptedModel([JSON.stringify(output)]), store: memoryStore() });
    assert.deepEqual((await teller.call("go", { sessionId: "s", outputSchema: schema })).output, output);
  },
);

story(
  "whatever a tool, a hook or a model throws or says, 100 MB of it are not stored",
  async ({ createAgent, memoryStore, modelOf, scriptedModel, tool, resultsIn, textOf, LockgateError, assert }) => {
    const huge = "x".repeat(100_000_000);
    const slot = { sessionId: "s" };
    const use = (name) => [{ toolCalls: [{ name, input: {} }] }, "done"];
    const make = (name, execute) => tool({ name, description: name, inputSchema: { type: "object" }, execute });
    const fail = (value) => () => {
      throw value;
    };
    const tools = [
      make("throws", fail(new Error(huge))),
      make("throws_text", fail(huge)),
      make("rejects", async () => Promise.reject({ message: huge, code: "TIMEOUT", hint: huge })),
      make("many_blocks", () => Array.from({ length: 1_000 }, () => ({ type: "text", text: huge.slice(0, 100_000) }))),
      make("long_member", () => ({ type: "text", text: "t", more: huge })),
      make("suspends", (_, context) => context.suspend(huge)),
    ];
    for (const { name } of tools) {
      const agent = await createAgent({ name: "helper", model: scriptedModel(use(name)), tools, store: memoryStore() });
      const reply = await agent.call("go", slot);
      const stored = await agent.exportSession(slot);
      assert.ok(stored.length < 11_000_000, `${name}: ${stored.length} characters are exported`);
      const text = name === "suspends" ? reply.asks[0].reason : textOf(resultsIn(reply.messages)[0].output);
      assert.ok(name === "long_member" ? text === "t" : /\d+ characters were left out here/.test(text), name);
    }
    const says = { deny: huge.slice(0, 20_000_000) };
    const hooks = [
      [{ beforeModel: fail(new Error(huge)) }, "MIDDLEWARE"],
      [{ onCall: fail(new LockgateError("MODEL_AUTH", huge, { hint: huge })) }, "MIDDLEWARE"],
      [{ beforeTool: () => says }, "stop"],
      [{ beforeTool: () => ({ deny: huge }) }, "MIDDLEWARE"],
    ];
    for (const [hook, expected] of hooks) {
      const agent = await createAgent({ name: "helper", model: scriptedModel(use("suspends")), tools, store: memoryStore(), middleware: [{ name: "m", ...hook }] });
      const outcome = await agent.call("go", slot).then(({ reason }) => reason, ({ code }) => code);
      assert.equal(outcome, expected);
      const stored = await agent.exportSession(slot);
      assert.ok(stored.length < 11_000_000, `${Object.keys(hook)}: ${stored.length} characters are exported`);
    }
    const throwing = modelOf(async function* () {
      throw new LockgateError("MODEL_BAD_REQUEST", huge, { hint: huge });
    });
    const agent = await createAgent({ name: "helper", model: throwing, store: memoryStore() });
    const error = await agent.call("go", slot).catch((error) => error);
    assert.equal(error.code, "MODEL_BAD_REQUEST");
    assert.ok((await agent.exportSession(slot)).length < 30_000);
  },
  { patienceMs: 120_000 },
);

story(
  "of 10,000 tool calls in one answer 64 run, or as many as maxToolCalls says, and the others get a result that says so",
  async ({ createAgent, memoryStore, modelOf, tool, resultsIn, textOf, assert }) => {
    let ran = 0;
    const look = tool({ name: "look", description: "Looks.", inputSchema: { type: "object" }, execute: () => void (ran += 1) });
    const model = modelOf(async function* ({ messages }) {
      if (messages.at(-1).role === "tool") return yield { type: "text", text: "done" };
      for (let index = 0; index < 10_000; index++) yield { type: "tool-call", index, id: `c${index}`, name: "look", arguments: "{}" };
    });
    for (const [options, most] of [[{}, 64], [{ maxToolCalls: 3 }, 3]]) {
      ran = 0;
      const agent = await createAgent({ name: "helper", model, tools: [look], store: memoryStore(), ...options });
      const reply = await agent.call("go", { sessionId: "s" });
      const results = resultsIn(reply.messages);
      assert.deepEqual([reply.text, ran, results.length], ["done", most, 10_000]);
      assert.deepEqual(results.map(({ id }) => id), Array.from({ length: 10_000 }, (_, n) => `c${n}`));
      assert.match(textOf(results.at(-1).output), new RegExp(`not run: an answer may make at most ${most} tool calls`));
    }
  },
);
