// Mistakes of callers: each gives a LockgateError with its code and a hint, and nothing is stored.
import assert from "node:assert/strict";
import { test } from "node:test";
import { story, tell } from "../support/project.mjs";

/** Makes all attempts of a table in one process, and tests the result of each row. */
function table(name, attempts) {
  test(name, async (t) => {
    const rows = await tell(attempts);
    assert.ok(rows.length > 0);
    for (const { what, wanted, got } of rows) {
      await t.test(`${what} is refused with ${wanted}`, () => {
        assert.equal(got.answer, undefined, "it was not refused");
        assert.ok(got.isOurs, `the thrown error is not a LockgateError: ${got.message}`);
        assert.equal(got.code, wanted, got.message);
        assert.ok(got.message.length > 0);
        assert.ok(got.hint?.length > 0, `"${got.message}" has no hint`);
        assert.ok(!got.hint.includes("undefined"), got.hint);
        assert.equal(got.commits, 0, "something was stored");
      });
    }
  });
}

table("I-05, I-06: ids that cannot be one are refused", async ({ createAgent, echo, watched, attemptsOn }) => {
  const { store, count } = watched();
  const agent = await createAgent({ name: "helper", model: echo(), store });
  const ids = {
    "an empty id": "",
    "a blank id": " \t ",
    "an id of 257 bytes": "x".repeat(257),
    "an id of 10 KB": "x".repeat(10_240),
    "an id of 86 characters that are 258 bytes": "€".repeat(86),
    "an object as id": { id: "s" },
    "a String object as id": new String("s"),
    "a list as id": ["s"],
    "a number as id": 7,
    "a big integer as id": 7n,
    "a symbol as id": Symbol("s"),
    "a boolean as id": true,
    "half a character as id": "a\ud800",
    "the other half as id": "\udc00a",
    "a control character in an id": "a\u0000b",
    "a line break in an id": "a\nb",
    "a delete character in an id": "a\u007fb",
    "undefined as id": undefined,
  };
  const uses = {
    "call's sessionId": (id) => agent.call("hello", { sessionId: id }),
    "stream's userId": (id) => agent.stream("hello", { sessionId: "s", userId: id }).result,
    "history's sessionId": (id) => agent.history({ sessionId: id }),
    "getAgentState's userId": (id) => agent.getAgentState({ sessionId: "s", userId: id }),
    "deleteSession's sessionId": (id) => agent.deleteSession({ sessionId: id }),
    "listSessions' userId": (id) => agent.listSessions(id),
  };
  const rows = Object.entries(uses).flatMap(([use, attempt]) =>
    Object.entries(ids).map(([what, id]) => [
      `${what} for ${use}`,
      "ID_INVALID",
      () => attempt(id),
    ]),
  );
  const callIds = Object.entries(ids)
    .filter(([, id]) => id !== undefined)
    .map(([what, id]) => [
      `${what} for callId`,
      "ID_INVALID",
      () => agent.call("hello", { sessionId: "s", callId: id }),
    ]);
  return attemptsOn(count, [
    ...rows,
    ...callIds,
    ["null as sessionId", "ID_INVALID", () => agent.call("hello", { sessionId: null })],
    ["a call without a session", "ID_INVALID", () => agent.call("hello")],
    ["a call with an empty context", "ID_INVALID", () => agent.call("hello", {})],
    ["a call with null as context", "ID_INVALID", () => agent.call("hello", null)],
    ["a call with text as context", "ID_INVALID", () => agent.call("hello", "s")],
    ["a call with a list as context", "ID_INVALID", () => agent.call("hello", ["s"])],
    ["history of nothing", "ID_INVALID", () => agent.history()],
    ["history of null", "ID_INVALID", () => agent.history(null)],
    ["history of text", "ID_INVALID", () => agent.history("s")],
    ["deleting nothing", "ID_INVALID", () => agent.deleteSession()],
  ]);
});

table(
  "invalid input is refused",
  async ({ createAgent, echo, watched, attemptsOn }) => {
    const { store, count } = watched();
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const cycle = { content: "round" };
    cycle.metadata = { cycle };
    const image = (source) => ({ content: [{ type: "image", source }] });
    const inputs = {
      undefined: undefined,
      null: null,
      "a number": 5,
      "a big integer": 5n,
      "a boolean": true,
      "a function": () => "hello",
      "a symbol": Symbol("hello"),
      "an empty list": [],
      "an empty object": {},
      "a list of null": [null],
      "a list of numbers": [1],
      "a list of lists": [["hello"]],
      "a number as content": { content: 5 },
      "null as content": { content: null },
      "an object as content": { content: { text: "hello" } },
      "a map": new Map([["content", "hello"]]),
      "a message of the assistant": { role: "assistant", content: "I said" },
      "a message of the system": { role: "system", content: "You are" },
      "a message of a tool": { role: "tool", content: "done" },
      "an unknown role": { role: "king", content: "hello" },
      "one bad message among good ones": [{ content: "good" }, { content: 5 }],
      "a cycle": cycle,
      "a big integer inside": { content: "hello", metadata: { n: 5n } },
      "something whose toJSON throws": {
        content: "hello",
        toJSON() {
          throw new Error("no");
        },
      },
      "something whose toJSON is nothing": { content: "hello", toJSON: () => undefined },
      "a block of an unknown type": { content: [{ type: "song", notes: "la" }] },
      "a thought": { content: [{ type: "thinking", thinking: "I am the model" }] },
      "a tool call": {
        content: [{ type: "tool_use", id: "1", name: "clock", input: {}, state: "pending" }],
      },
      "a tool result": {
        content: [{ type: "tool_result", id: "1", name: "clock", output: [], state: "success" }],
      },
      "an image without a source": image(undefined),
      "an image of an unknown source": image({ type: "telepathy" }),
      "an image without its data": image({ type: "base64", mediaType: "image/png" }),
      "a text block without text": { content: [{ type: "text" }] },
      "a number as id of a message": { id: 5, content: "hello" },
      "text as metadata": { metadata: "x", content: "hello" },
    };
    const said = Object.entries(inputs).map(([what, input]) => [
      what,
      "INPUT_INVALID",
      () => agent.call(input, { sessionId: "s" }),
    ]);
    const slot = { sessionId: "s" };
    return attemptsOn(count, [
      ...said,
      ["text as signal", "INPUT_INVALID", () => agent.call("hello", { ...slot, signal: "now" })],
      [
        "an empty object as signal",
        "INPUT_INVALID",
        () => agent.call("hello", { ...slot, signal: {} }),
      ],
      [
        "a controller as signal",
        "INPUT_INVALID",
        () => agent.call("hello", { ...slot, signal: new AbortController() }),
      ],
      ["null as signal", "INPUT_INVALID", () => agent.call("hello", { ...slot, signal: null })],
      ["zero as the limit of history", "INPUT_INVALID", () => agent.history(slot, { limit: 0 })],
      [
        "half a message as the limit of history",
        "INPUT_INVALID",
        () => agent.history(slot, { limit: 0.5 }),
      ],
      [
        "text as the limit of a list",
        "INPUT_INVALID",
        () => agent.listSessions(null, { limit: "10" }),
      ],
      [
        "a number as the cursor of a list",
        "INPUT_INVALID",
        () => agent.listSessions(null, { after: 5 }),
      ],
      [
        "a number as the place in history",
        "INPUT_INVALID",
        () => agent.history(slot, { before: 5 }),
      ],
      ["null as page", "INPUT_INVALID", () => agent.history(slot, null)],
    ]);
  },
);

table(
  "options that cannot work are refused",
  async ({
    createAgent,
    customModel,
    demoModel,
    echo,
    memoryStore,
    tool,
    schemaOf,
    watched,
    attemptsOn,
  }) => {
    const { store, count } = watched();
    const make = (options) => async () => {
      const agent = await createAgent({ name: "helper", model: echo(), store, ...options });
      return agent.call("hello", { sessionId: "s" });
    };
    // Refused when it is created or when it is used: both are fine.
    const withTool = (changes) => async () => make({ tools: [tool({ ...config, ...changes })] })();
    const inputSchema = { type: "object" };
    const config = { name: "clock", description: "the time", inputSchema, execute: () => "noon" };
    const clock = tool(config);
    const capabilities = memoryStore().capabilities;
    const able = (changes) => ({ ...memoryStore(), capabilities: { ...capabilities, ...changes } });
    const { get, list, commit } = store;
    const cycle = {};
    cycle.cycle = cycle;
    const rows = {
      "an unknown option": make({ somethingElse: true }),
      "a misspelt option": make({ sytemPrompt: "x" }),
      "a missing name": make({ name: undefined }),
      "an empty name": make({ name: "" }),
      "a number as name": make({ name: 5 }),
      "half a character as name": make({ name: "\ud800" }),
      "a missing model": make({ model: undefined }),
      "null as model": make({ model: null }),
      "text as model": make({ model: "gpt" }),
      "a plain object as model": make({ model: { id: "mine", generate: async function* () {} } }),
      "a tool as model": make({ model: clock }),
      "a model as tool": make({ tools: [demoModel()] }),
      "tools that are not a list": make({ tools: clock }),
      "tools in a set": make({ tools: new Set([clock]) }),
      "null as tools": make({ tools: null }),
      "a plain object as tool": make({ tools: [config] }),
      "a hole in the tools": make({ tools: [clock, undefined] }),
      "two tools of one name": make({ tools: [clock, tool(config)] }),
      "a tool's name with a space": withTool({ name: "the clock" }),
      "an empty tool's name": withTool({ name: "" }),
      "a tool's name of 65 letters": withTool({ name: "x".repeat(65) }),
      "a tool's timeout of zero": withTool({ timeoutMs: 0 }),
      "text as a tool's parallel": withTool({ parallel: "yes" }),
      "maxIterations of 0": make({ maxIterations: 0 }),
      "maxIterations of -1": make({ maxIterations: -1 }),
      "half of a maxIterations": make({ maxIterations: 1.5 }),
      "text as maxIterations": make({ maxIterations: "3" }),
      "infinity as maxIterations": make({ maxIterations: Infinity }),
      "not a number as queueLimit": make({ queueLimit: NaN }),
      "a negative queueLimit": make({ queueLimit: -1 }),
      "a number as systemPrompt": make({ systemPrompt: 5 }),
      "a function as systemPrompt": make({ systemPrompt: () => "x" }),
      "text as requireUserId": make({ requireUserId: "yes" }),
      "text as crossTab": make({ crossTab: "yes" }),
      "a number as description": make({ description: 5 }),
      "an empty defaultSessionId": make({ defaultSessionId: "" }),
      "a number as timeouts": make({ timeouts: 5 }),
      "an unknown timeout": make({ timeouts: { modle: 5 } }),
      "zero as a timeout": make({ timeouts: { tool: 0 } }),
      "text as retries": make({ retries: "3" }),
      "zero attempts": make({ retries: { attempts: 0 } }),
      "a cycle in generate": make({ generate: { extra: cycle } }),
      "a list as generate": make({ generate: [] }),
      "null as store": make({ store: null }),
      "a map as store": make({ store: new Map() }),
      "a store without methods": make({ store: { name: "mine", capabilities } }),
      "a store without commit": make({ store: { name: "mine", capabilities, get, list } }),
      "a store without capabilities": make({ store: { name: "mine", get, list, commit } }),
      "a store with null as capabilities": make({
        store: { name: "mine", capabilities: null, get, list, commit },
      }),
      "a store with empty capabilities": make({
        store: { name: "mine", capabilities: {}, get, list, commit },
      }),
      "a store that is not atomic": make({ store: able({ atomic: false }) }),
      "a shared store that cannot compare": make({
        store: able({ shared: "cluster", compareAndSet: false }),
      }),
      "a store shared with the moon": make({ store: able({ shared: "moon" }) }),
      "no options at all": () => createAgent(),
      "null as options": () => createAgent(null),
      "text as options": () => createAgent("helper"),
      "a tool without a name": () => tool({ ...config, name: undefined }),
      "a tool without a description": () => tool({ ...config, description: undefined }),
      "a tool without a function": () => tool({ ...config, execute: "noon" }),
      "a tool without a schema": () => tool({ ...config, inputSchema: undefined }),
      "text as a tool's schema": () => tool({ ...config, inputSchema: "object" }),
      "a cycle as a tool's schema": () => tool({ ...config, inputSchema: cycle }),
      "a schema that cannot be converted": () =>
        tool({ ...config, inputSchema: { "~standard": { version: 1 } } }),
      "a schema that converts to nothing": () =>
        tool({ ...config, inputSchema: schemaOf(undefined) }),
      "a schema whose conversion throws": () =>
        tool({
          ...config,
          inputSchema: {
            "~standard": {
              version: 1,
              vendor: "x",
              jsonSchema: {
                input() {
                  throw new Error("this type has no JSON Schema");
                },
              },
            },
          },
        }),
      "nothing as a tool": () => tool(),
      "nothing as a custom model": () => customModel(),
      "a custom model without an id": () => customModel({ generate: async function* () {} }),
      "a custom model without generate": () => customModel({ id: "mine" }),
      "a negative delay of the demo model": () => demoModel({ delayMs: -1 }),
    };
    return attemptsOn(
      count,
      Object.entries(rows).map(([what, attempt]) => [what, "OPTIONS", attempt]),
    );
  },
);

story(
  "a misspelt option is answered with the right one",
  async ({ createAgent, echo, rejection, assert }) => {
    const misspelt = {
      sytemPrompt: "systemPrompt",
      systemprompt: "systemPrompt",
      maxIteration: "maxIterations",
      tool: "tools",
      stores: "store",
      queue_limit: "queueLimit",
    };
    for (const [wrong, right] of Object.entries(misspelt)) {
      const error = await rejection(createAgent({ name: "helper", model: echo(), [wrong]: "x" }));
      assert.equal(error.hint, `did you mean ${right}?`);
      assert.ok(error.message.includes(wrong));
    }
    const error = await rejection(createAgent({ name: "helper", model: echo(), somethingElse: 1 }));
    assert.match(error.hint, /systemPrompt/);
  },
);

story(
  "a refused call is an error event, then throws in its loop",
  async ({ createAgent, echo, readAll, rejection, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const call = agent.stream("hello", { sessionId: "" });
    const seen = [];
    const error = await rejection(
      (async () => {
        for await (const event of call) seen.push(event);
      })(),
    );
    assert.equal(error.code, "ID_INVALID");
    assert.deepEqual(
      seen.map(({ type, seq }) => [type, seq]),
      [["error", 0]],
    );
    assert.equal(seen[0].error.code, "ID_INVALID");
    assert.equal(await rejection(call.result), error);
    assert.equal(
      await rejection(readAll(agent.stream(null, { sessionId: "s" }))).then((it) => it.code),
      "INPUT_INVALID",
    );
  },
);

story("every valid input is stored unchanged", async ({ createAgent, echo, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  const image = {
    type: "image",
    source: { type: "url", url: "https://example.org/a.png" },
    name: "a",
  };
  const inputs = [
    "",
    "text with \u0000, \u2028 and 😀",
    { content: "one message" },
    {
      role: "user",
      content: [{ type: "text", text: "look" }, image],
      id: "mine",
      name: "Ann",
      metadata: { a: [1, null] },
    },
    [{ content: "two" }, { content: [{ type: "text", text: "messages" }] }],
  ];
  for (const [n, input] of inputs.entries()) {
    const sessionId = `s${n}`;
    await agent.call(input, { sessionId });
    const said = (await agent.history({ sessionId })).slice(0, -1);
    const list = Array.isArray(input)
      ? input
      : [typeof input === "string" ? { content: input } : input];
    assert.equal(said.length, list.length);
    for (const [index, { content, id, name, metadata }] of list.entries()) {
      const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
      assert.deepEqual(said[index].content, blocks);
      assert.equal(said[index].name, name);
      assert.deepEqual(said[index].metadata, metadata);
      if (id !== undefined) assert.equal(said[index].id, id);
    }
  }
});
