// Hooks around calls, with the packed package.
import { story } from "../support/project.mjs";

story(
  "R47: middleware sees every phase, in order, with the call's own context",
  async ({ createAgent, customModel, tool, assert }) => {
    const seen = [];
    const note = (name) =>
      Object.fromEntries(
        ["onCall", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"].map((point) => [
          point,
          (_, context) => void seen.push(`${name} ${point} ${context.sessionId} ${context.attributes.trace}`),
        ]),
      );
    const model = customModel({
      id: "m",
      async *generate({ messages, system }) {
        if (messages.length > 1) yield { type: "text", text: system };
        else yield { type: "tool-call", index: 0, name: "echo", arguments: "{}" };
      },
    });
    const echo = tool({ name: "echo", description: "echoes", inputSchema: { type: "object" }, execute: () => "ok" });
    const middleware = [
      { name: "outer", ...note("outer"), systemPrompt: (prompt) => `${prompt} outer` },
      { name: "inner", ...note("inner"), systemPrompt: async (prompt) => `${prompt} inner` },
    ];
    const agent = await createAgent({ name: "helper", systemPrompt: "base", model, tools: [echo], middleware });
    const reply = await agent.call("go", { sessionId: "s", attributes: { trace: 7 } });
    assert.equal(reply.text, "base outer inner");
    const phases = ["onCall", "beforeModel", "afterModel", "beforeTool", "afterTool", "beforeModel", "afterModel", "onEnd"];
    assert.deepEqual(seen, phases.flatMap((point) => [`outer ${point} s 7`, `inner ${point} s 7`]));
  },
);

story(
  "middleware changes requests, answers, tool calls and results",
  async ({ createAgent, customModel, tool, lines, resultsIn, assert }) => {
    const shown = [];
    const model = customModel({
      id: "m",
      async *generate({ messages, generate }) {
        shown.push([messages.length, generate.temperature]);
        if (messages.at(-1).role === "tool") yield { type: "text", text: "the secret is out" };
        else yield { type: "tool-call", index: 0, name: "echo", arguments: '{"n":1}' };
      },
    });
    const echo = tool({ name: "echo", description: "echoes", inputSchema: { type: "object" }, execute: (input) => input });
    const middleware = [
      {
        name: "changes",
        onCall: (input) => input.map((message) => ({ ...message, content: [{ type: "text", text: "polite" }] })),
        beforeModel: (request) => ({ ...request, generate: { temperature: 0 } }),
        afterModel: (message) => ({
          ...message,
          content: message.content.map((block) => (block.type === "text" ? { ...block, text: block.text.replace("secret", "******") } : block)),
        }),
        beforeTool: ({ input }) => ({ input: { ...input, n: 2 } }),
        afterTool: (result) => ({ ...result, output: [...result.output, { type: "text", text: " (checked)" }] }),
      },
    ];
    const agent = await createAgent({ name: "helper", model, tools: [echo], middleware });
    const reply = await agent.call("rude", { sessionId: "s" });
    assert.equal(reply.text, "the ****** is out");
    assert.deepEqual(shown, [[1, 0], [3, 0]]);
    assert.match(JSON.stringify(resultsIn(reply.messages)), /"n\\":2.*checked/);
    assert.equal(lines(await agent.history({ sessionId: "s" }))[0], "user: polite");
  },
);

story(
  "middleware can stop a call with its own message, deny a tool, and fail the call with MIDDLEWARE",
  async ({ createAgent, demoModel, tool, lines, rejection, assert }) => {
    const clock = tool({ name: "clock", description: "time", inputSchema: { type: "object" }, execute: () => "noon" });
    const thrown = new Error("the guard sleeps");
    const guard = {
      name: "guard",
      beforeModel({ messages }) {
        const text = messages.at(-1).content[0]?.text ?? "";
        if (text.includes("forbidden")) return { stop: "I will not." };
        if (text.includes("broken")) throw thrown;
      },
      beforeTool: () => ({ deny: "no clocks here" }),
    };
    const agent = await createAgent({ name: "helper", model: demoModel(), tools: [clock], middleware: [guard] });
    const stopped = await agent.call("something forbidden", { sessionId: "s" });
    assert.deepEqual([stopped.reason, stopped.text], ["middleware", "I will not."]);
    const denied = await agent.call("what time is it", { sessionId: "t" });
    assert.match(denied.text, /no clocks here/);
    const error = await rejection(agent.call("something broken", { sessionId: "s" }));
    assert.deepEqual([error.code, error.cause], ["MIDDLEWARE", thrown]);
    assert.match(error.message, /"guard" failed: the guard sleeps/);
    const said = ["user: something forbidden", "assistant: I will not.", "user: something broken"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "middleware gets the outcome of every call, and an error that it throws then becomes a warning",
  async ({ createAgent, modelOf, readAll, LockgateError, assert }) => {
    const ends = [];
    const model = modelOf(async function* ({ messages }) {
      if (messages.length > 1) throw new LockgateError("MODEL_AUTH", "wrong key");
      yield { type: "text", text: "hi" };
    });
    const watch = {
      name: "watch",
      onEnd(outcome) {
        ends.push("reply" in outcome ? outcome.reply.text : [outcome.error.code, LockgateError.isInstance(outcome.error)]);
        throw new Error("oops");
      },
    };
    const agent = await createAgent({ name: "helper", model, middleware: [watch] });
    const events = await readAll(agent.stream("one", { sessionId: "s" }));
    assert.ok(events.some(({ type, code }) => type === "warning" && code === "middleware"));
    assert.equal(events.at(-1).type, "call-end");
    await agent.call("two", { sessionId: "s" }).catch(() => {});
    assert.deepEqual(ends, ["hi", ["MODEL_AUTH", true]]);
  },
);

story("a value that is not middleware is refused", async ({ createAgent, demoModel, rejection, assert }) => {
  for (const middleware of [{}, [5], [{}], [{ name: "x", onCall: 5 }], [{ name: "x", beforeModle() {} }]]) {
    const error = await rejection(createAgent({ name: "helper", model: demoModel(), middleware }));
    assert.equal(error.code, "OPTIONS");
    assert.ok(error.hint);
  }
});

story(
  "reviseContext: an application's own compaction is kept, undone like ours, and the log stays whole",
  async ({ createAgent, modelOf, memoryStore, textOf, lines, assert }) => {
    const shown = [];
    const model = modelOf(async function* ({ messages }) {
      shown.push(messages.map(textOf));
      yield { type: "text", text: `answer ${shown.length}` };
    });
    const runs = [];
    const middleware = [
      {
        name: "own compaction",
        reviseContext: async (context, run) => {
          runs.push([run.sessionId, context.length]);
          return context.length < 5 ? undefined : { context: context.slice(-1), summary: "they talked" };
        },
      },
    ];
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model, middleware, store });
    const slot = { sessionId: "s" };
    for (const n of [1, 2, 3]) await agent.call(`question ${n}`, slot);
    assert.deepEqual(runs, [["s", 1], ["s", 3], ["s", 5]]);
    assert.equal(shown[2].length, 2);
    assert.match(shown[2][0], /they talked/);
    await agent.call("question 4", slot);
    assert.deepEqual(shown[3].slice(1), ["question 3", "answer 3", "question 4"]);
    const fresh = await createAgent({ name: "helper", model, store });
    const { summary, context } = await fresh.getAgentState(slot);
    assert.deepEqual([summary, context.length], ["they talked", 5]);
    assert.equal(lines(await fresh.history(slot)).length, 8);
    await fresh.undoCompaction(slot);
    assert.deepEqual(lines((await fresh.getAgentState(slot)).context), lines(await fresh.history(slot)));
  },
);

story(
  "reviseContext: new messages are kept, numbers stay exact, and an invalid answer fails the call with the name of the middleware",
  async ({ createAgent, modelOf, tool, memoryStore, rejection, assert }) => {
    const model = modelOf(async function* ({ messages }) {
      if (messages.at(-1).role === "tool") yield { type: "text", text: "done" };
      else yield { type: "tool-call", index: 0, name: "look", arguments: '{"n":12345678901234567890}' };
    });
    const look = tool({ name: "look", description: "Looks.", inputSchema: { type: "object" }, execute: () => "seen" });
    const agentWith = (reviseContext) => createAgent({ name: "helper", model, tools: [look], middleware: [{ name: "own", reviseContext }], store: memoryStore() });
    const slot = { sessionId: "s" };
    const note = { id: "note", role: "user", content: [{ type: "text", text: "a note" }], at: "2026-11-19T00:00:00.000Z" };
    const adds = await agentWith((context) => (context.some(({ id }) => id === "note") ? { context } : { context: [note, ...context] }));
    const { messages } = await adds.call("look", slot);
    const { context } = await adds.getAgentState(slot);
    assert.deepEqual(context.map(({ id }) => id), ["note", ...messages.map(({ id }) => id)]);
    assert.match(await adds.exportSession(slot), /12345678901234567890/);
    const wrong = [
      (context) => ({ context: context.slice(0, -1) }),
      (context) => ({ context: context.slice(-1) }),
      (context) => ({ context: [...context, context[0]] }),
      (context) => ({ context: [...context, { ...note, role: "robot" }] }),
      () => ({ context: "all" }),
      () => ({ summary: 7 }),
      () => {
        throw new Error("no idea");
      },
    ];
    for (const revise of wrong) {
      const agent = await agentWith((context) => (context.at(-1).role === "tool" ? revise(context) : undefined));
      const error = await rejection(agent.call("look", slot));
      assert.equal(error.code, "MIDDLEWARE");
      assert.match(error.message, /"own"/);
      assert.equal((await agent.getAgentState(slot)).context.length, 3);
    }
  },
);
