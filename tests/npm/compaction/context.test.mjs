// The state that tools and middleware of the packed package can read of their call.
import { story } from "../support/project.mjs";

story(
  "a tool reads the state of its own call, its changes included, and of no other",
  async ({ createAgent, modelOf, tool, barrier, textOf, refusal, assert }) => {
    const [met, seen, kept] = [barrier(2), {}, []];
    const look = tool({
      name: "look",
      description: "looks",
      inputSchema: { type: "object" },
      async execute(_, context) {
        const before = context.state;
        await met();
        const { sessionId, state } = context;
        kept.push(context);
        seen[sessionId] = {
          ids: [state.session_id, state.user_id],
          said: state.context.map(({ role, content }) => `${role}: ${textOf(content) || content[0].type}`),
          groups: state.tool_context.activated_groups,
          isFrozen: Object.isFrozen(state.context) && Object.isFrozen(state.context[0].content[0]),
          isOneReading: before.context === before.context,
        };
        assert.deepEqual(structuredClone({ ...context.state }).context, before.context);
        assert.equal(JSON.parse(JSON.stringify(before)).revision, before.revision);
        return "seen";
      },
    });
    const steps = [
      [{ name: "reset_equipped_tools", arguments: '{"to_activate":["spare"]}' }],
      [{ name: "look" }],
    ];
    const model = modelOf(async function* ({ messages }) {
      const step = steps[messages.filter(({ role }) => role === "assistant").length];
      if (step === undefined) return yield { type: "text", text: "Done." };
      yield* step.map((call, index) => ({ type: "tool-call", index, id: `c-${call.name}`, ...call }));
    });
    const toolGroups = ["first", "spare"].map((name) => ({ name, description: name, tools: [], active: name === "first" }));
    const agent = await createAgent({ name: "helper", model, tools: [look], toolGroups, metaTool: true });
    const slots = ["a", "b"].map((sessionId) => ({ sessionId, userId: `user of ${sessionId}` }));
    await Promise.all(slots.map((slot) => agent.call(`I am ${slot.sessionId}`, slot)));
    for (const { sessionId, userId } of slots) {
      const said = [`user: I am ${sessionId}`, "assistant: tool_use", "tool: tool_result", "assistant: tool_use"];
      const ids = [sessionId, userId];
      assert.deepEqual(seen[sessionId], { ids, said, groups: ["spare"], isFrozen: true, isOneReading: true });
    }
    for (const context of kept) {
      const error = await refusal(() => context.state.context);
      assert.equal(error.code, "INPUT_INVALID");
      assert.match(error.message, /only while its tool or middleware runs/);
    }
  },
);

story(
  "middleware reads the state of its call at every point",
  async ({ createAgent, scriptedModel, tool, assert }) => {
    const seen = [];
    const look = (point) => (_, { state }) => void seen.push([point, state.context.length, state.version]);
    const points = ["onCall", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"];
    const spy = Object.fromEntries(points.map((point) => [point, look(point)]));
    const systemPrompt = (prompt, context) => (look("systemPrompt")(prompt, context), prompt);
    const echo = tool({ name: "echo", description: "echo", inputSchema: { type: "object" }, execute: () => "echo" });
    const model = scriptedModel([{ toolCalls: [{ name: "echo", input: {} }] }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: [echo], middleware: [{ name: "spy", systemPrompt, ...spy }] });
    const { version } = await agent.call("go", { sessionId: "s" });
    const [accepted, saved] = [version - 1, version];
    assert.deepEqual(seen, [
      ["onCall", 0, accepted],
      ["systemPrompt", 0, accepted],
      ["beforeModel", 1, accepted],
      ["afterModel", 1, accepted],
      ["beforeTool", 2, accepted],
      ["afterTool", 2, accepted],
      ["beforeModel", 3, accepted],
      ["afterModel", 3, accepted],
      ["onEnd", 4, saved],
    ]);
  },
);

story(
  "V-10: an integer beyond doubles reaches a tool, and comes back, with all its digits",
  async ({ createAgent, modelOf, tool, resultsIn, lines, assert }) => {
    const seen = [];
    const inputSchema = { type: "object", properties: { id: { type: "integer" } } };
    const same = tool({ name: "same", description: "same", inputSchema, execute: (input) => (seen.push(input), input) });
    const numbers = ["9007199254740991", "9007199254740993", "-9223372036854775808", "18446744073709551615", "1.5"];
    let requests = 0;
    const model = modelOf(async function* () {
      if (requests++ > 0) return yield { type: "text", text: "Done." };
      yield* numbers.map((id, index) => ({ type: "tool-call", index, id: `c${index}`, name: "same", arguments: `{"id":${id},"list":[${id}]}` }));
    });
    // Numbers in middleware are doubles, but a value that middleware does not change stays exact.
    const spy = { name: "spy", afterModel: (message) => ({ ...message }), beforeTool: ({ input }) => ({ input: { ...input, more: true } }) };
    const agent = await createAgent({ name: "helper", model, tools: [same], middleware: [spy] });
    await agent.call("go", { sessionId: "s" });
    assert.deepEqual(
      seen.map(({ id }) => id),
      [9007199254740991, 9007199254740993n, -9223372036854775808n, 18446744073709551615n],
    );
    assert.ok(seen.every(({ id, list, more }) => list[0] === id && more));
    const results = resultsIn(await agent.history({ sessionId: "s" }));
    assert.deepEqual(
      results.slice(0, 4).map(({ output }) => output[0].text),
      numbers.slice(0, 4).map((id) => `{"id":${id},"list":[${id}],"more":true}`),
    );
    assert.match(lines(await agent.history({ sessionId: "s" }))[6], /^error: .*/, "1.5 is not an integer");
  },
);

story(
  "V-11: return values that cannot be read become error results with the reason, and nothing hangs",
  async ({ createAgent, scriptedModel, tool, resultsIn, assert }) => {
    const cycle = {};
    cycle.self = cycle;
    const endless = () => ({ get next() { return endless(); } });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const answers = {
      a_getter_that_throws: [{ get text() { throw new Error("do not touch"); } }, /do not touch/],
      a_type_that_throws: [{ get type() { throw new Error("nor this"); } }, /nor this/],
      a_proxy_that_throws: [new Proxy({}, { ownKeys: () => { throw new Error("locked"); } }), /locked/],
      a_revoked_proxy: [proxy, /revoked/],
      a_list_without_end: [new Proxy([], { get: (_, name) => (name === "length" ? 2 ** 40 : undefined) }), /more than 1000000 values|string length/],
      a_sparse_list: [new Array(4_000_000_000), /more than 1000000 values|string length/],
      a_cycle: [cycle, /circular/],
      an_object_without_end: [endless(), /stack/],
      a_toJSON_that_throws: [{ toJSON: () => { throw "a string"; } }, /a string/],
      a_then_that_throws: [{ get then() { throw new Error("no then"); } }, /no then/],
    };
    const make = ([name, [answer]]) => tool({ name, description: "odd", inputSchema: { type: "object" }, execute: () => answer });
    const toolCalls = Object.keys(answers).map((name, n) => ({ name, input: {}, id: `c${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: Object.entries(answers).map(make) });
    assert.equal((await agent.call("go", { sessionId: "s" })).text, "Done.");
    for (const { name, state, output } of resultsIn(model.requests[1].messages)) {
      assert.equal(state, "error", name);
      assert.match(output[0].text, answers[name][1], name);
    }
  },
);

story(
  "T-07: for an output of fifty megabytes the model gets the start and the end, and the caller gets a warning",
  async ({ createAgent, scriptedModel, tool, readAll, resultsIn, assert }) => {
    const most = 5_000_000;
    const huge = `begin ${"😀".repeat(25_000_000)} end`;
    const answers = { huge, blocks: [{ type: "text", text: huge }, { type: "text", text: huge }], limit: "x".repeat(most), more: "x".repeat(most + 1) };
    const tools = Object.entries(answers).map(([name, answer]) =>
      tool({ name, description: name, inputSchema: { type: "object" }, execute: () => answer }),
    );
    const toolCalls = Object.keys(answers).map((name, n) => ({ name, input: {}, id: `c${n}` }));
    const model = scriptedModel([{ toolCalls }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools });
    const events = await readAll(agent.stream("go", { sessionId: "s" }));
    const results = Object.fromEntries(resultsIn(model.requests[1].messages).map((it) => [it.name, it.output.map(({ text }) => text)]));
    for (const [text] of [results.huge, results.blocks]) {
      assert.ok(text.length < most + 100, `${text.length}`);
      assert.match(text, /^begin 😀.*😀\n\[\d+ characters were left out here\]\n😀.* end$/su);
      assert.ok(!text.includes("\ufffd"), "no half character");
      assert.equal(text.replace(/\n\[.*\]\n/s, "").length + Number(/(\d+) characters/.exec(text)[1]), huge.length);
    }
    assert.ok(results.blocks[1].length < 100, "all blocks of a result share one limit");
    assert.deepEqual([results.limit[0], results.more[0].includes("[1 characters")], [answers.limit, true]);
    const warnings = events.filter(({ type }) => type === "warning");
    assert.deepEqual(warnings.map(({ code }) => code), ["tool-output", "tool-output", "tool-output"]);
    assert.match(warnings[0].message, /tool "huge"/);
  },
);

story(
  "T-07: with eviction the model gets both ends of four million characters, and can read the whole by its path",
  async ({ createAgent, scriptedModel, tool, readAll, resultsIn, assert }) => {
    const whole = Array.from({ length: 80_000 }, (_, n) => `line ${n}`.padEnd(49, ".")).join("\n");
    const huge = tool({ name: "huge", description: "huge", inputSchema: { type: "object" }, execute: () => whole });
    const reads = ({ messages }) => {
      const [, path] = /(tool-results\/\S+?\.txt)/.exec(JSON.stringify(messages));
      return { toolCalls: [{ name: "read_file", input: { path, offset: 79_999, limit: 1 }, id: "c2" }] };
    };
    const model = scriptedModel([{ toolCalls: [{ name: "huge", input: {}, id: "c1" }] }, reads, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: [huge], toolResultEviction: true, workspace: true });
    const slot = { sessionId: "s", userId: "ada" };
    const events = await readAll(agent.stream("go", slot));
    assert.equal(events.find(({ type }) => type === "evicted").chars, whole.length);
    const [{ output }] = resultsIn(model.requests[1].messages);
    assert.ok(output[0].text.length < 5_000, `${output[0].text.length}`);
    assert.match(resultsIn(model.requests[2].messages)[1].output[0].text, /line 79999/);
    assert.deepEqual(resultsIn(await agent.history(slot))[0].output, [{ type: "text", text: whole }]);
  },
);

story(
  "an evicted result is a file that agent.files and other sessions find, and that ends with its session",
  async ({ createAgent, scriptedModel, tool, readAll, resultsIn, assert }) => {
    const huge = tool({ name: "huge", description: "huge", inputSchema: { type: "object" }, execute: () => "needle ".repeat(20_000) });
    const grep = { name: "grep_files", input: { pattern: "needle", path: "tool-results" }, id: "c2" };
    const model = scriptedModel([{ toolCalls: [{ name: "huge", input: {}, id: "c1" }] }, "Done.", { toolCalls: [grep] }, "Found."]);
    const agent = await createAgent({ name: "helper", model, tools: [huge], toolResultEviction: true, workspace: true });
    const [one, other] = ["one", "other"].map((sessionId) => ({ sessionId, userId: "ada" }));
    const { path } = (await readAll(agent.stream("go", one))).find(({ type }) => type === "evicted");
    assert.match(path, /^tool-results\/one\/.+\.txt$/);
    assert.deepEqual(await agent.files.list("ada"), [path]);
    assert.equal(await agent.files.read("ada", path), "needle ".repeat(20_000));
    await agent.call("look for it", other);
    assert.ok(resultsIn(model.requests[3].messages)[0].output[0].text.startsWith(`${path}:1:needle`));
    await agent.deleteSession(one);
    assert.deepEqual(await agent.files.list("ada"), []);
  },
);

story(
  "without a workspace an evicted result has no path",
  async ({ createAgent, scriptedModel, tool, readAll, resultsIn, assert }) => {
    const huge = tool({ name: "huge", description: "huge", inputSchema: { type: "object" }, execute: () => "x".repeat(100_000) });
    const model = scriptedModel([{ toolCalls: [{ name: "huge", input: {}, id: "c1" }] }, "Done."]);
    const agent = await createAgent({ name: "helper", model, tools: [huge], toolResultEviction: true });
    const events = await readAll(agent.stream("go", { sessionId: "s", userId: "ada" }));
    assert.equal(events.find(({ type }) => type === "evicted").path, "");
    assert.doesNotMatch(resultsIn(model.requests[1].messages)[0].output[0].text, /tool-results/);
    const report = await agent.inspect({ sessionId: "s", userId: "ada" });
    assert.ok(report.parts.every((part) => !("evictedTo" in part)));
  },
);

story(
  "V-09: a warning reports every replaced half character",
  async ({ createAgent, modelOf, tool, readAll, assert }) => {
    const half = tool({ name: "half", description: "half", inputSchema: { type: "object" }, execute: () => "\udc00!" });
    let requests = 0;
    const model = modelOf(async function* () {
      if (requests++ === 0) return yield { type: "tool-call", index: 0, id: "c1", name: "half" };
      yield { type: "text", text: "split \ud83d" };
      yield { type: "text", text: "\ude00 whole, lone \ud83d" };
    });
    const agent = await createAgent({ name: "helper", model, tools: [half] });
    const warningsOf = async (said, sessionId) => {
      requests = sessionId === "s" ? 0 : 1;
      const events = await readAll(agent.stream(said, { sessionId }));
      const warnings = events.filter(({ type }) => type === "warning");
      assert.ok(warnings.every(({ code }) => code === "text"));
      return [warnings.map(({ message }) => message), events.at(-1).reply.text];
    };
    const [warnings, text] = await warningsOf("my \ud83d", "s");
    assert.equal(text, "split 😀 whole, lone \ufffd");
    assert.deepEqual(warnings, [
      "half a character was replaced in the input",
      'half a character was replaced in what the tool "half" answered',
      "half a character was replaced in what the model said",
    ]);
    assert.deepEqual((await warningsOf("whole 😀", "t"))[0], ["half a character was replaced in what the model said"]);
  },
);
