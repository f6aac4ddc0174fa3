// Calls as events, and every way to end one early, with the packed package.
import { story } from "./project.mjs";

story(
  "the events of a call come in order, numbered without gaps, and every start has its end",
  async ({ createAgent, scriptedModel, tool, readAll, assert }) => {
    const clock = tool({
      name: "clock",
      description: "the time",
      inputSchema: { type: "object" },
      execute: (_input, { emit }) => (emit("tick"), "noon"),
    });
    const first = { thinking: "let me see", text: "I look.", toolCalls: [{ name: "clock", input: {} }] };
    const model = scriptedModel([first, { text: "It is noon.", usage: { outputTokens: 4 } }]);
    const agent = await createAgent({ name: "helper", model, tools: [clock] });
    const call = agent.stream("What time is it?", { sessionId: "s", userId: "alice" });
    const events = await readAll(call);

    const unjoined = events.map(({ type }) => type);
    const types = unjoined.filter((type, index) => !(type.endsWith("-delta") && type === unjoined[index - 1]));
    assert.deepEqual(types, [
      ...["call-start", "accepted", "model-start"],
      ...["thinking-start", "thinking-delta", "thinking-end", "text-start", "text-delta", "text-end"],
      ...["tool-call-start", "tool-call-delta", "tool-call-end", "model-end"],
      ...["tool-start", "tool-delta", "tool-end"],
      ...["model-start", "text-start", "text-delta", "text-end", "model-end", "saved", "call-end"],
    ]);
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
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
  "the ids and words in events are those in history",
  async ({ createAgent, scriptedModel, tool, readAll, textOf, resultsIn, assert }) => {
    const clock = tool({
      name: "clock",
      description: "the time",
      inputSchema: { type: "object" },
      execute: () => ({ hour: 12 }),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "clock", input: { zone: "UTC" } }] }, "It is noon."]);
    const agent = await createAgent({ name: "helper", model, tools: [clock] });
    const events = await readAll(agent.stream("What time is it?", { sessionId: "s" }));
    const only = (type) => events.filter((event) => event.type === type);
    const [question, asking, , answer] = await agent.history({ sessionId: "s" });

    assert.deepEqual(only("call-start")[0].messageIds, [question.id]);
    assert.deepEqual(only("accepted")[0].messages, [question]);
    assert.equal(only("text-start")[0].messageId, answer.id);
    const textId = only("text-start")[0].id;
    assert.ok([...only("text-delta"), ...only("text-end")].every(({ id }) => id === textId));
    assert.equal(only("text-delta").map(({ delta }) => delta).join(""), textOf(answer));
    const [use] = asking.content;
    assert.deepEqual(only("tool-call-end")[0].input, use.input);
    assert.equal(only("tool-call-delta").map(({ delta }) => delta).join(""), JSON.stringify(use.input));
    const ids = events.filter(({ type }) => type.startsWith("tool-")).map(({ toolCallId }) => toolCallId);
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
  "the answer can be read while it is being given",
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
  "a call that nobody reads runs to its end, and its events can be read later",
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
    assert.ok(events.length < 20, `unread deltas are joined, and there were ${events.length} events`);
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
    const deltas = events.filter(({ type }) => type === "text-delta");
    assert.equal(deltas.map(({ delta }) => delta).join(""), text);
  },
);

story(
  "a call has one reader",
  async ({ createAgent, echo, readAll, refusal, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const call = agent.stream("hello", { sessionId: "s" });
    const first = readAll(call);
    const error = await refusal(() => readAll(call));
    assert.equal(error.code, "INPUT_INVALID");
    assert.equal((await first).at(-1).type, "call-end");
  },
);

story(
  "a call can be read as a stream, and cancelling that stops it",
  async ({ createAgent, echo, endless, lines, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const types = [];
    for await (const { type } of agent.stream("hello", { sessionId: "s" }).toReadableStream()) types.push(type);
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

story(
  "leaving the loop stops the call, and what was said is kept when it is left",
  async ({ createAgent, endless, lines, assert }) => {
    const { model } = endless();
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("tell me", { sessionId: "s" });
    let heard = "";
    for await (const event of call) {
      if (event.type === "text-delta") heard += event.delta;
      if (heard === "once upon a time") break;
    }
    const said = ["user: tell me", "assistant: once upon a time"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
    const reply = await call.result;
    assert.equal(reply.reason, "interrupted");
    assert.equal(reply.text, "once upon a time");
    assert.deepEqual(lines(reply.messages), said);
  },
);

story(
  "a call that is detached runs on when its loop is left",
  async ({ createAgent, modelOf, signpost, assert }) => {
    const left = signpost();
    const model = modelOf(async function* () {
      yield { type: "text", text: "to the " };
      await left.passed;
      yield { type: "text", text: "end" };
    });
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("hello", { sessionId: "s" });
    call.detach();
    for await (const { type } of call) if (type === "text-delta") break;
    left.pass();
    assert.equal((await call.result).text, "to the end");
    assert.equal((await call.result).reason, "stop");
  },
);

story(
  "stop keeps the partial answer, and its message is what the user says next",
  async ({ createAgent, endless, lines, assert }) => {
    const { model, reached } = endless("Once.");
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("tell me", { sessionId: "s" });
    await reached;
    call.stop("Shorter, please.");
    call.stop("This comes too late.");
    const reply = await call.result;
    assert.equal(reply.reason, "interrupted");
    assert.equal(reply.text, "once upon a time");
    const said = ["user: tell me", "assistant: once upon a time", "user: Shorter, please."];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
    await agent.call("Well?", { sessionId: "s" });
    const { context } = await agent.getAgentState({ sessionId: "s" });
    assert.deepEqual(lines(context), [...said, "user: Well?", "assistant: Once."]);
  },
);

story(
  "a message that cannot be one is refused by stop, and the call goes on",
  async ({ createAgent, modelOf, signpost, refusal, assert }) => {
    const [reached, refused] = [signpost(), signpost()];
    const model = modelOf(async function* () {
      reached.pass();
      await refused.passed;
      yield { type: "text", text: "still here" };
    });
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("hello", { sessionId: "s" });
    await reached.passed;
    for (const message of [5, null, { content: 5 }, { role: "assistant", content: "x" }]) {
      const error = await refusal(() => call.stop(message));
      assert.equal(error.code, "INPUT_INVALID", `for ${JSON.stringify(message)}`);
      assert.ok(error.hint, `for ${JSON.stringify(message)}`);
    }
    refused.pass();
    assert.equal((await call.result).text, "still here");
    call.stop("after its end this changes nothing");
    assert.equal((await agent.history({ sessionId: "s" })).length, 2);
  },
);

story(
  "a call that is stopped while it waits stores nothing",
  async ({ createAgent, endless, lines, assert }) => {
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model });
    const running = agent.stream("running", { sessionId: "s" });
    const waiting = agent.stream("waiting", { sessionId: "s" });
    await reached;
    waiting.stop();
    assert.equal((await waiting.result).reason, "interrupted");
    running.stop();
    await running.result;
    const said = ["user: running", "assistant: once upon a time"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "a signal rejects with ABORTED and its own reason, the partial answer is kept, and the next call works",
  async ({ createAgent, endless, rejection, lines, LockgateError, assert }) => {
    const { model, reached } = endless("here I am");
    const agent = await createAgent({ name: "helper", model });
    const controller = new AbortController();
    const reason = { why: "the tab was closed" };
    const call = agent.call("tell me", { sessionId: "s", signal: controller.signal });
    await reached;
    controller.abort(reason);
    const error = await rejection(call);
    assert.ok(error instanceof LockgateError);
    assert.equal(error.code, "ABORTED");
    assert.equal(error.name, "AbortError");
    assert.equal(error.cause, reason);
    assert.equal(error.partial.content[0].text, "once upon a time");
    assert.deepEqual(error.slot, { sessionId: "s" });
    const reply = await agent.call("Are you there?", { sessionId: "s" });
    assert.equal(reply.text, "here I am");
    const said = ["user: tell me", "assistant: once upon a time", "user: Are you there?", "assistant: here I am"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "a loop over a call whose signal fires throws ABORTED after the error event",
  async ({ createAgent, endless, refusal, assert }) => {
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model });
    const controller = new AbortController();
    const call = agent.stream("tell me", { sessionId: "s", signal: controller.signal });
    const events = [];
    const thrown = refusal(async () => {
      for await (const event of call) events.push(event);
    });
    await reached;
    controller.abort();
    const error = await thrown;
    assert.equal(error.name, "AbortError");
    assert.equal(error.cause, controller.signal.reason);
    assert.equal(events.at(-1).type, "error");
    assert.equal(events.at(-1).error.code, "ABORTED");
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
    assert.deepEqual(events.at(-1).error.partial, error.partial);
  },
);

story(
  "a signal that has fired already stores nothing and asks nobody",
  async ({ createAgent, scriptedModel, watched, rejection, assert }) => {
    const { store, count } = watched();
    const model = scriptedModel([]);
    const agent = await createAgent({ name: "helper", model, store });
    const signal = AbortSignal.abort("too late");
    const error = await rejection(agent.call("hello", { sessionId: "s", signal }));
    assert.equal(error.code, "ABORTED");
    assert.equal(error.cause, "too late");
    assert.equal(count.commit, 0);
    assert.equal(model.requests.length, 0);
    assert.deepEqual(await agent.history({ sessionId: "s" }), []);
  },
);

story(
  "a signal that fires while the call waits stores nothing of it and holds nobody up",
  async ({ createAgent, modelOf, signpost, rejection, lines, assert }) => {
    const [reached, gate] = [signpost(), signpost()];
    const model = modelOf(async function* ({ messages }) {
      reached.pass();
      await gate.passed;
      yield { type: "text", text: `heard ${messages.length}` };
    });
    const agent = await createAgent({ name: "helper", model });
    const controller = new AbortController();
    const first = agent.call("first", { sessionId: "s" });
    const second = rejection(agent.call("second", { sessionId: "s", signal: controller.signal }));
    const third = agent.call("third", { sessionId: "s" });
    await reached.passed;
    controller.abort();
    assert.equal((await second).code, "ABORTED");
    gate.pass();
    await Promise.all([first, third]);
    const said = ["user: first", "assistant: heard 1", "user: third", "assistant: heard 3"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "one signal for many calls is let go of when they are done",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args) => (listeners++, addEventListener.apply(signal, args));
    signal.removeEventListener = (...args) => (listeners--, removeEventListener.apply(signal, args));
    await Promise.all(Array.from({ length: 20 }, () => agent.call("hello", { sessionId: "s", signal })));
    assert.equal(listeners, 0);
  },
);

story(
  "a model that fails fails the call with what it threw, and the question is kept",
  async ({ createAgent, modelOf, rejection, lines, assert }) => {
    const thrown = new TypeError("the cable is out");
    const model = modelOf(async function* () {
      yield { type: "text", text: "I was about" };
      throw thrown;
    });
    const agent = await createAgent({ name: "helper", model });
    const error = await rejection(agent.call("hello", { sessionId: "s" }));
    assert.equal(error.code, "MODEL_FAILED");
    assert.equal(error.cause, thrown);
    assert.match(error.message, /the cable is out/);
    assert.equal(error.partial.content[0].text, "I was about");
    const said = ["user: hello", "assistant: I was about"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "whatever a model does wrong is an error of the call and never of the process",
  async ({ createAgent, modelOf, rejection, LockgateError, assert }) => {
    const faults = {
      "throws undefined": async function* () {
        throw undefined;
      },
      "throws a string": async function* () {
        throw "no";
      },
      "yields no delta": async function* () {
        yield { type: "song" };
      },
      "yields null": async function* () {
        yield null;
      },
      "yields a cycle": async function* () {
        const delta = { type: "text", text: "x" };
        yield Object.assign(delta, { delta });
      },
      "yields a big integer": async function* () {
        yield { type: "text", text: 5n };
      },
      "is no generator": () => 5,
      "throws at once": () => {
        throw new Error("at once");
      },
    };
    for (const [name, generate] of Object.entries(faults)) {
      const agent = await createAgent({ name: "helper", model: modelOf(generate) });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.ok(error instanceof LockgateError, name);
      assert.equal(error.code, "MODEL_FAILED", `${name}: ${error.message}`);
      assert.equal((await agent.history({ sessionId: "s" })).length, 1, name);
    }
  },
);
