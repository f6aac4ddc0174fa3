// Calls of the packed package as events: in order, complete, and for any number of readers.
import { story } from "../support/project.mjs";

story(
  "R66: the events of a call come in order, numbered without gaps, and every start event has an end event",
  async ({ createAgent, scriptedModel, memoryStore, tool, readAll, assert }) => {
    const clock = tool({
      name: "clock",
      description: "the time",
      inputSchema: { type: "object" },
      execute: (_input, { emit }) => (emit("tick"), "noon"),
    });
    const first = {
      thinking: "let me see",
      text: "I look.",
      toolCalls: [{ name: "clock", input: {} }],
    };
    const model = scriptedModel([first, { text: "It is noon.", usage: { outputTokens: 4 } }]);
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model, tools: [clock], store });
    const call = agent.stream("What time is it?", { sessionId: "s", userId: "alice" });
    const events = await readAll(call);

    const unjoined = events.map(({ type }) => type);
    const types = unjoined.filter(
      (type, index) => !(type.endsWith("-delta") && type === unjoined[index - 1]),
    );
    assert.deepEqual(types, [
      ...["call-start", "accepted", "model-start"],
      ...[
        "thinking-start",
        "thinking-delta",
        "thinking-end",
        "text-start",
        "text-delta",
        "text-end",
      ],
      ...["tool-call-start", "tool-call-delta", "tool-call-end", "model-end"],
      ...["tool-start", "tool-delta", "tool-end"],
      ...["model-start", "text-start", "text-delta", "text-end", "model-end", "saved", "call-end"],
    ]);
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index),
    );
    for (const { slot, callId, at } of events) {
      assert.deepEqual(slot, { sessionId: "s", userId: "alice" });
      assert.equal(callId, call.id);
      assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    const reply = await call.result;
    assert.deepEqual(events.at(-1).reply, reply);
    assert.equal(reply.callId, call.id);
    assert.equal(reply.usage.outputTokens, 4);
  },
);

story(
  "ids and text in events are the same as in history",
  async ({ createAgent, scriptedModel, tool, readAll, textOf, resultsIn, assert }) => {
    const clock = tool({
      name: "clock",
      description: "the time",
      inputSchema: { type: "object" },
      execute: () => ({ hour: 12 }),
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "clock", input: { zone: "UTC" } }] },
      "It is noon.",
    ]);
    const agent = await createAgent({ name: "helper", model, tools: [clock] });
    const events = await readAll(agent.stream("What time is it?", { sessionId: "s" }));
    const only = (type) => events.filter((event) => event.type === type);
    const [question, asking, , answer] = await agent.history({ sessionId: "s" });

    assert.deepEqual(only("call-start")[0].messageIds, [question.id]);
    assert.deepEqual(only("accepted")[0].messages, [question]);
    assert.equal(only("text-start")[0].messageId, answer.id);
    const textId = only("text-start")[0].id;
    assert.ok([...only("text-delta"), ...only("text-end")].every(({ id }) => id === textId));
    assert.equal(
      only("text-delta")
        .map(({ delta }) => delta)
        .join(""),
      textOf(answer),
    );
    const [use] = asking.content;
    assert.deepEqual(only("tool-call-end")[0].input, use.input);
    assert.equal(
      only("tool-call-delta")
        .map(({ delta }) => delta)
        .join(""),
      JSON.stringify(use.input),
    );
    const ids = events
      .filter(({ type }) => type.startsWith("tool-"))
      .map(({ toolCallId }) => toolCallId);
    assert.deepEqual(new Set(ids), new Set([use.id]));
    const [result] = resultsIn(await agent.history({ sessionId: "s" }));
    const { state, output } = only("tool-end")[0];
    assert.deepEqual({ state, output }, { state: result.state, output: result.output });
  },
);

story(
  "a call that waits says how many are ahead of it",
  async ({ createAgent, echo, readAll, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const calls = ["q1", "q2", "q3"].map((input) => agent.stream(input, { sessionId: "s" }));
    const queued = (await Promise.all(calls.map(readAll))).map(
      (events) => events.find(({ type }) => type === "queued")?.ahead,
    );
    assert.deepEqual(queued, [undefined, 1, 2]);
  },
);

story(
  "the answer can be read while it is streamed",
  async ({ createAgent, modelOf, signpost, assert }) => {
    const heard = signpost();
    const model = modelOf(async function* () {
      yield { type: "text", text: "first" };
      await heard.passed;
      yield { type: "text", text: " and last" };
    });
    const agent = await createAgent({ name: "helper", model });
    const deltas = [];
    for await (const event of agent.stream("hello", { sessionId: "s" })) {
      if (event.type !== "text-delta") continue;
      deltas.push(event.delta);
      heard.pass();
    }
    assert.deepEqual(deltas, ["first", " and last"]);
  },
);

story(
  "a call without a reader runs to its end, and its events can be read later",
  async ({ createAgent, modelOf, readAll, turns, assert }) => {
    const model = modelOf(async function* () {
      for (let n = 0; n < 3_000; n++) {
        yield { type: "text", text: "word " };
        if (n % 500 === 0) await turns(1);
      }
    });
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("hello", { sessionId: "s" });
    const { text } = await call.result;
    assert.equal(text, "word ".repeat(3_000));
    const events = await readAll(call);
    assert.ok(
      events.length < 20,
      `unread deltas are joined, and there were ${events.length} events`,
    );
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index),
    );
    const deltas = events.filter(({ type }) => type === "text-delta");
    assert.equal(deltas.map(({ delta }) => delta).join(""), text);
  },
);

story(
  "the first piece of an answer arrives before the rest, and many fast pieces are joined",
  async ({ createAgent, customModel, assert }) => {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    let seen;
    const isSeen = new Promise((resolve) => (seen = resolve));
    const generate = async function* () {
      yield { type: "text", text: "first" };
      await isSeen;
      for (let piece = 0; piece < 1_000; piece++) {
        await turn();
        yield { type: "text", text: "." };
      }
    };
    const agent = await createAgent({ name: "helper", model: customModel({ id: "fast", generate }) });
    const pieces = [];
    for await (const event of agent.stream("hello", { sessionId: "s" })) {
      if (event.type !== "text-delta") continue;
      pieces.push(event.delta);
      seen();
    }
    assert.equal(pieces[0], "first");
    assert.equal(pieces.join(""), `first${".".repeat(1_000)}`);
    assert.ok(pieces.length < 500, `${pieces.length} events`);
  },
);

story("a call has one reader", async ({ createAgent, echo, readAll, refusal, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  const call = agent.stream("hello", { sessionId: "s" });
  const first = readAll(call);
  const error = await refusal(() => readAll(call));
  assert.equal(error.code, "INPUT_INVALID");
  assert.equal((await first).at(-1).type, "call-end");
});

story(
  "a call can be read as a stream, and cancelling the stream stops the call",
  async ({ createAgent, echo, endless, lines, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const types = [];
    for await (const { type } of agent.stream("hello", { sessionId: "s" }).toReadableStream())
      types.push(type);
    assert.deepEqual([types[0], types.at(-1)], ["call-start", "call-end"]);

    const { model, reached } = endless();
    const talker = await createAgent({ name: "talker", model });
    const call = talker.stream("hello", { sessionId: "s" });
    const reader = call.toReadableStream().getReader();
    await reader.read();
    await reached;
    await reader.cancel();
    assert.equal((await call.result).reason, "interrupted");
    const said = ["user: hello", "assistant: once upon a time"];
    assert.deepEqual(lines(await talker.history({ sessionId: "s" })), said);
  },
);
