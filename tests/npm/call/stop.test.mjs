// Every way to end a call early, with the packed package: the partial answer is kept, and the next call works.
import { story } from "../support/project.mjs";

story(
  "R8: leaving the loop stops the call, and the partial answer is saved by then",
  async ({ createAgent, endless, mapStore, lines, assert }) => {
    const { model } = endless();
    const agent = await createAgent({ name: "helper", model, store: mapStore() });
    const call = agent.stream("tell me", { sessionId: "s" });
    let saved = false;
    call.result.then(() => (saved = true));
    let heard = "";
    for await (const event of call) {
      if (event.type === "text-delta") heard += event.delta;
      if (heard === "once upon a time") break;
    }
    assert.ok(saved, "the loop ended before the answer was saved");
    const said = ["user: tell me", "assistant: once upon a time"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
    const reply = await call.result;
    assert.equal(reply.reason, "interrupted");
    assert.equal(reply.text, "once upon a time");
    assert.deepEqual(lines(reply.messages), said);
  },
);

story(
  "a detached call continues when its loop is left",
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
  "stop keeps the partial answer, and its message becomes the next user message",
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
  "stop refuses an invalid message, and the call continues",
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
    const said = [
      "user: tell me",
      "assistant: once upon a time",
      "user: Are you there?",
      "assistant: here I am",
    ];
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
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index),
    );
    assert.deepEqual(events.at(-1).error.partial, error.partial);
  },
);

story(
  "a call whose signal has fired already stores nothing and sends no request",
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
  "G-02, R4: if the signal fires while the call waits, nothing of the call is stored and no other call is delayed",
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
  "listeners on a signal that many calls share are removed when the calls have ended",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args) => (listeners++, addEventListener.apply(signal, args));
    signal.removeEventListener = (...args) => (
      listeners--,
      removeEventListener.apply(signal, args)
    );
    await Promise.all(
      Array.from({ length: 20 }, () => agent.call("hello", { sessionId: "s", signal })),
    );
    assert.equal(listeners, 0);
  },
);
