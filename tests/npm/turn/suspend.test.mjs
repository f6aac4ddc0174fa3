// Tools whose results come from outside, calls that join another, and calls stored step by step, with the packed package.
import { story } from "../support/project.mjs";

story(
  "R26: a tool without execute suspends the call, and confirm submits its result",
  async ({ createAgent, tool, memoryStore, scriptedModel, readAll, lines, assert }) => {
    const outside = tool({ name: "outside", description: "done elsewhere", inputSchema: { type: "object" } });
    const store = memoryStore();
    const slot = { sessionId: "s", userId: "alice" };
    const asks = scriptedModel([{ toolCalls: [{ name: "outside", input: { n: 1 }, id: "c1" }] }]);
    const first = await createAgent({ name: "helper", model: asks, tools: [outside], store });
    const events = await readAll(first.stream("go", slot));
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => /^(tool-start|tool-end|ask|saved|call-end)$/.test(type)),
      ["tool-start", "tool-end", "ask", "saved", "call-end"],
    );
    const { reply } = events.at(-1);
    assert.equal(reply.reason, "suspended");
    assert.deepEqual(reply.asks, [{ kind: "result", toolCallId: "c1", name: "outside", input: { n: 1 }, reason: "", suggestedRules: [] }]);
    assert.equal((await first.session(slot)).asking, true);

    // Another agent continues with nothing but the store.
    const model = scriptedModel(["found it"]);
    const second = await createAgent({ name: "helper", model, tools: [outside], store });
    assert.deepEqual(await second.asks(slot), reply.asks);
    const call = second.confirm(slot, [{ toolCallId: "c1", output: { place: "Delft" } }]);
    const seen = await readAll(call);
    assert.deepEqual(seen.find(({ type }) => type === "answered").answers, [{ toolCallId: "c1", output: { place: "Delft" } }]);
    assert.equal((await call.result).text, "found it");
    assert.deepEqual(lines(await second.history(slot)), ["user: go", "assistant: ", 'success: {"place":"Delft"}', "assistant: found it"]);
    assert.deepEqual(await second.asks(slot), []);
  },
);

story(
  "R26: a tool may suspend itself, and its later result changes nothing",
  async ({ createAgent, tool, memoryStore, scriptedModel, lines, refusal, assert }) => {
    const inputSchema = { type: "object" };
    const caught = tool({
      name: "caught",
      description: "swallows what it should not",
      inputSchema,
      execute(_, context) {
        try {
          context.suspend("ask the clerk");
        } catch {
          return "I know better";
        }
      },
    });
    const plain = tool({ name: "plain", description: "answers", inputSchema, execute: () => "at once" });
    const calls = { toolCalls: [{ name: "caught", input: {}, id: "c1" }, { name: "plain", input: {}, id: "c2" }] };
    const model = scriptedModel([calls, "thanks"]);
    const agent = await createAgent({ name: "helper", model, tools: [caught, plain], store: memoryStore() });
    const slot = { sessionId: "s" };
    const { asks } = await agent.call("go", slot);
    assert.deepEqual(asks.map(({ toolCallId, reason }) => [toolCallId, reason]), [["c1", "ask the clerk"]]);
    const codes = [];
    for (const answers of [[{ toolCallId: "c2", output: 1 }], [{ toolCallId: "c1", output: 1 }, { toolCallId: "c1", output: 2 }]]) {
      codes.push((await refusal(() => agent.confirm(slot, answers).result)).code);
    }
    for (const answers of [[], "yes", [{ output: 1 }], [{ toolCallId: "c1", approve: true }]]) {
      codes.push((await refusal(() => agent.confirm(slot, answers).result)).code);
    }
    assert.deepEqual(codes, ["NOT_ASKING", "NOT_ASKING", "INPUT_INVALID", "INPUT_INVALID", "INPUT_INVALID", "INPUT_INVALID"]);
    for (const change of [() => agent.clearContext(slot), () => agent.append(slot, [{ role: "user", content: "x" }]), () => agent.resume(slot).result]) {
      assert.equal((await refusal(change)).code, "PENDING_TOOLS");
    }
    const failed = await agent.confirm(slot, [{ toolCallId: "c1", output: "nobody home", failed: true }]).result;
    assert.equal(failed.text, "thanks");
    assert.deepEqual(lines(await agent.history(slot)).slice(2, 4), ["success: at once", "error: nobody home"]);
  },
);

story(
  "R25: a plain message closes open tool calls, and the model sees that",
  async ({ createAgent, tool, memoryStore, scriptedModel, resultsIn, assert }) => {
    const outside = tool({ name: "outside", description: "done elsewhere", inputSchema: { type: "object" } });
    const model = scriptedModel([{ toolCalls: [{ name: "outside", input: {}, id: "c1" }] }, "never mind then"]);
    const agent = await createAgent({ name: "helper", model, tools: [outside], store: memoryStore() });
    await agent.call("go", { sessionId: "s" });
    assert.equal((await agent.call("forget it", { sessionId: "s" })).reason, "stop");
    assert.deepEqual(resultsIn(model.requests[1].messages).map(({ id, state }) => [id, state]), [["c1", "interrupted"]]);
    assert.equal(model.requests[1].messages.at(-1).role, "user");
  },
);

story(
  "R35: the model neither sees presets nor can set them",
  async ({ createAgent, tool, memoryStore, scriptedModel, refusal, assert }) => {
    const seen = [];
    const inputSchema = {
      type: "object",
      properties: { place: { type: "string" }, unit: { enum: ["C", "F"] } },
      required: ["place", "unit"],
      additionalProperties: false,
    };
    const config = { name: "weather", description: "tells the weather", inputSchema, execute: (input) => void seen.push(input) };
    const model = scriptedModel([
      { toolCalls: [{ name: "weather", input: { place: "Delft" } }] },
      { toolCalls: [{ name: "weather", input: { place: "Delft", unit: "F" } }] },
      "done",
    ]);
    const agent = await createAgent({ name: "helper", model, tools: [tool({ ...config, presets: { unit: "C" } })], store: memoryStore() });
    await agent.call("weather?", { sessionId: "s" });
    assert.deepEqual(seen, [{ place: "Delft", unit: "C" }, { place: "Delft", unit: "C" }]);
    const { inputSchema: shown } = model.requests[0].tools[0];
    assert.deepEqual([Object.keys(shown.properties), shown.required], [["place"], ["place"]]);
    const unknown = tool({ ...config, presets: { nothing: 1 } });
    assert.equal((await refusal(() => createAgent({ name: "helper", model, tools: [unknown], store: memoryStore() }))).code, "OPTIONS");
  },
);

story(
  "a steering message joins the running call at its next step and ends with its reply",
  async ({ createAgent, tool, memoryStore, scriptedModel, signpost, readAll, lines, assert }) => {
    const [running, go] = [signpost(), signpost()];
    const slow = tool({
      name: "slow",
      description: "waits",
      inputSchema: { type: "object" },
      async execute() {
        running.pass();
        await go.passed;
        return "slept";
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "slow", input: {} }] }, "both heard", "alone"]);
    const agent = await createAgent({ name: "helper", model, tools: [slow], store: memoryStore(), overlap: "steer" });
    const slot = { sessionId: "s" };
    const first = agent.call("one", slot);
    await running.passed;
    const second = agent.stream("two", { ...slot, callId: "second" });
    go.pass();
    const [reply, events] = await Promise.all([first, readAll(second)]);
    assert.deepEqual([reply.text, (await second.result).text, (await second.result).callId], ["both heard", "both heard", "second"]);
    assert.deepEqual(events.map(({ type }) => type), ["call-start", "queued", "accepted", "call-end"]);
    assert.deepEqual(lines(await agent.history(slot)), ["user: one", "assistant: ", "success: slept", "user: two", "assistant: both heard"]);
    assert.equal((await agent.call("two", { ...slot, callId: "second" })).text, "both heard");
    assert.equal((await agent.call("three", slot)).text, "alone");
  },
);

story(
  "with durability step every reply and every batch of tools is stored at once",
  async ({ createAgent, tool, watched, scriptedModel, readAll, refusal, lines, assert }) => {
    const { store, count } = watched();
    const echo = tool({ name: "echo", description: "echoes", inputSchema: { type: "object" }, execute: () => "echo" });
    const model = scriptedModel([{ toolCalls: [{ name: "echo", input: {} }] }, "done"]);
    const agent = await createAgent({ name: "helper", model, tools: [echo], store, durability: "step" });
    const events = await readAll(agent.stream("go", { sessionId: "s" }));
    assert.equal(events.filter(({ type }) => type === "saved").length, 3);
    assert.equal(count.commit, 4);
    assert.equal(events.at(-1).reply.messages.length, 4);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), lines(events.at(-1).reply.messages));
    for (const wrong of [{ durability: "never" }, { onConflict: "panic" }, { overlap: "maybe" }]) {
      assert.equal((await refusal(() => createAgent({ name: "helper", model, store, ...wrong }))).code, "OPTIONS");
    }
  },
);

story(
  "resume continues a turn that was cut off, and reports an error if there is none",
  async ({ createAgent, memoryStore, scriptedModel, refusal, lines, assert }) => {
    const model = scriptedModel([new Error("the line is dead"), "here I am"]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), retries: { attempts: 1 } });
    const slot = { sessionId: "s" };
    assert.equal((await refusal(() => agent.resume(slot).result)).code, "NO_SUCH_SESSION");
    await refusal(() => agent.call("anybody?", slot));
    assert.equal((await agent.resume(slot).result).text, "here I am");
    assert.deepEqual(lines(await agent.history(slot)), ["user: anybody?", "assistant: here I am"]);
    assert.equal((await refusal(() => agent.resume(slot).result)).code, "INPUT_INVALID");
    model.finished();
  },
);
