// JSON that is nested too deep or too large, through every method of the package.
import { story } from "../support/project.mjs";

story(
  "V-03: deep nesting in every method is refused with a typed error, or accepted and read back by the next process",
  async ({ createAgent, memoryStore, tool, modelOf, echo, LockgateError, assert }) => {
    const nested = (depth) => {
      let value = 1;
      for (let n = 0; n < depth; n++) value = n % 2 === 0 ? [value] : { a: value };
      return value;
    };
    const texted = (depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    const slot = { sessionId: "s", userId: "alice" };
    const store = memoryStore();
    let asked = {};
    const deep = tool({ name: "deep", description: "Answers deeply.", inputSchema: { type: "object" }, execute: () => asked.output ?? "flat" });
    const model = modelOf(async function* ({ messages }) {
      if (messages.at(-1).role === "tool" || asked.arguments === undefined) return yield { type: "text", text: "fine" };
      yield { type: "tool-call", index: 0, name: "deep", arguments: asked.arguments, ...(asked.provider && { provider: asked.provider }) };
    });
    const middleware = { name: "deep", beforeTool: () => asked.changed, afterTool: (result) => (asked.after ? { ...result, output: asked.after } : undefined) };
    const agent = await createAgent({ name: "helper", model, tools: [deep], middleware: [middleware], store });
    const called = (how) => {
      asked = how;
      return agent.call("go", slot).finally(() => (asked = {}));
    };
    const other = (options) => createAgent({ name: "other", model: echo(), store: memoryStore(), ...options });
    const block = (n) => [{ type: "text", text: "x", extra: nested(n) }];
    const doors = {
      "an input": (n) => agent.call({ role: "user", content: [{ type: "text", text: "hi" }], metadata: { deep: nested(n) } }, slot),
      "an appended message": (n) => agent.append(slot, [{ role: "user", content: "hi", metadata: { deep: nested(n) } }]),
      "an agent state": async (n) => {
        const state = await agent.getAgentState(slot);
        return agent.putAgentState(slot, { ...state, context: [{ ...state.context[0], metadata: { deep: nested(n) } }] });
      },
      "a document": (n) => agent.importSession({ ...slot, sessionId: `i${n}` }, `{"context":[],"a":${texted(n - 1)}}`),
      "options of a call": (n) => agent.call("hi", { ...slot, generate: { extra: { deep: nested(n) } } }),
      "options of an agent": (n) => other({ generate: { extra: { deep: nested(n) } } }),
      "a tool's schema": (n) => other({ tools: [tool({ name: "t", description: "d", inputSchema: { const: nested(n) }, execute: () => 1 })] }),
      "arguments of a tool": (n) => called({ arguments: texted(n) }),
      "what a tool answers": (n) => called({ arguments: "{}", output: nested(n) }),
      "blocks that a tool answers": (n) => called({ arguments: "{}", output: block(n) }),
      "what middleware makes of an input": (n) => called({ arguments: "{}", changed: { input: { a: nested(n) } } }),
      "what middleware makes of a result": (n) => called({ arguments: "{}", after: block(n) }),
      "a provider's own data": (n) => called({ arguments: "{}", provider: { deep: nested(n) } }),
    };
    const results = new Set(["what a tool answers", "blocks that a tool answers", "arguments of a tool"]);
    for (const [door, go] of Object.entries(doors)) {
      for (const depth of [90, 95, 96, 97, 98, 99, 100, 101, 102, 110, 115, 116, 118, 120, 122, 124, 126, 127, 128, 129, 1_000, 4_000, 10_000, 1_000_000]) {
        const where = `${door} of depth ${depth}`;
        await agent.deleteSession(slot).catch(() => {});
        await agent.call("hello", slot);
        const outcome = await Promise.resolve(depth).then(go).then(() => "taken", (error) => (LockgateError.isInstance(error) ? error.code : error?.stack));
        assert.match(outcome, /^(taken|INPUT_INVALID|OPTIONS|MIDDLEWARE|MODEL_FAILED)$/, where);
        if (depth <= 90 || results.has(door)) assert.equal(outcome, "taken", where);
        if (depth >= 120 && !results.has(door)) assert.notEqual(outcome, "taken", where);
        const next = await createAgent({ name: "helper", model: echo(), store });
        await next.history(slot);
        const text = await next.exportSession(slot);
        await next.importSession({ ...slot, sessionId: "copy" }, text);
        assert.equal((await next.call("and now?", slot)).text, "you said and now?", where);
        await next.deleteSession({ ...slot, sessionId: "copy" });
      }
    }
  },
  { patienceMs: 120_000 },
);

story("V-03: an input that is too large for the wasm is refused before it reaches the wasm", async ({ createAgent, echo, rejection, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  const error = await rejection(agent.call("x".repeat(64_000_001), { sessionId: "s" }));
  assert.equal(error.code, "INPUT_INVALID");
  assert.match(error.message, /64000000/);
  assert.equal((await agent.call("small", { sessionId: "s" })).text, "you said small");
});

story(
  "V-14: arguments that are built to keep a schema checker busy are checked in time, and other sessions are answered",
  async ({ createAgent, modelOf, tool, resultsIn, assert }) => {
    const deep = { $ref: "#/$defs/tree", $defs: { tree: { type: "object", properties: { a: { anyOf: [{ $ref: "#/$defs/tree" }, { $ref: "#/$defs/tree" }, { type: "string", maxLength: 1 }] } } } } };
    const schemas = {
      pattern: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } },
      alternatives: { type: "object", properties: { text: { type: "string", pattern: "^(a|aa|a?)*b$" } } },
      tree: { type: "object", properties: { tree: deep }, $defs: deep.$defs },
    };
    const nested = (n) => (n === 0 ? "too long" : { a: nested(n - 1) });
    const inputs = {
      pattern: { text: `${"a".repeat(100_000)}!` },
      alternatives: { text: "a".repeat(100_000) },
      tree: { tree: nested(40) },
    };
    const tools = Object.entries(schemas).map(([name, inputSchema]) => tool({ name, description: "d", inputSchema, execute: () => "it fits" }));
    const model = modelOf(async function* ({ messages }) {
      const name = messages[0].content[0].text;
      if (name === "hello" || messages.length > 1) return yield { type: "text", text: "fine" };
      yield { type: "tool-call", index: 0, name, arguments: JSON.stringify(inputs[name]) };
    });
    const agent = await createAgent({ name: "helper", model, tools });
    const busy = Object.keys(inputs).map((name) => agent.call(name, { sessionId: name }));
    assert.equal((await agent.call("hello", { sessionId: "other" })).text, "fine");
    for (const { messages } of await Promise.all(busy)) assert.equal(resultsIn(messages)[0].state, "error");
  },
);
