// Sessions with the packed package: one call at a time in each session, different sessions in parallel, and no lost turn.
import { story } from "../support/project.mjs";

story(
  "G-01, R2: a hundred calls at once on one session leave a hundred questions and answers in order",
  async ({ createAgent, memoryStore, modelOf, lines, turns, assert }) => {
    const seen = [];
    const model = modelOf(async function* ({ messages }) {
      const heard = lines(messages);
      seen.push(heard.length);
      const question = heard.at(-1);
      await turns((seen.length * 7) % 5);
      yield { type: "text", text: "to " };
      await turns((seen.length * 3) % 4);
      yield { type: "text", text: question };
    });
    const agent = await createAgent({ name: "helper", store: memoryStore(), model, queueLimit: 100 });
    const numbers = Array.from({ length: 100 }, (_, n) => n);
    const replies = await Promise.all(numbers.map((n) => agent.call(`q${n}`, { sessionId: "s" })));
    const said = numbers.flatMap((n) => [`user: q${n}`, `assistant: to user: q${n}`]);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
    assert.deepEqual(
      replies.map(({ text }) => text),
      numbers.map((n) => `to user: q${n}`),
    );
    assert.deepEqual(
      seen,
      numbers.map((n) => 2 * n + 1),
    );
    const { context } = await agent.getAgentState({ sessionId: "s" });
    assert.deepEqual(lines(context), said);
  },
);

story(
  "every request shows the model all earlier turns, word for word",
  async ({ createAgent, modelOf, lines, assert }) => {
    const requests = [];
    const model = modelOf(async function* (request) {
      requests.push(lines(request.messages));
      yield { type: "text", text: `a${requests.length}` };
    });
    const agent = await createAgent({ name: "helper", model, systemPrompt: "Be brief." });
    await Promise.all(["q1", "q2", "q3"].map((input) => agent.call(input, { sessionId: "s" })));
    const whole = ["user: q1", "assistant: a1", "user: q2", "assistant: a2", "user: q3"];
    assert.deepEqual(requests, [whole.slice(0, 1), whole.slice(0, 3), whole]);
  },
);

story(
  "R1: two sessions overlap: both reach the model before either is answered",
  async ({ createAgent, modelOf, barrier, lines, assert }) => {
    const meet = barrier(4);
    const model = modelOf(async function* ({ messages }) {
      await meet();
      yield { type: "text", text: `only ${lines(messages).length}` };
    });
    const agent = await createAgent({ name: "helper", model });
    const slots = [
      { sessionId: "s1" },
      { sessionId: "s2" },
      { sessionId: "s1", userId: "alice" },
      { sessionId: "s1", userId: "bob" },
    ];
    const replies = await Promise.all(slots.map((slot) => agent.call("hello", slot)));
    assert.deepEqual(
      replies.map(({ text }) => text),
      Array(4).fill("only 1"),
    );
  },
);

story(
  "two agents over one store take turns on a session and lose none",
  async ({ createAgent, memoryStore, modelOf, lines, turns, assert }) => {
    const store = memoryStore();
    let inside = 0;
    const model = modelOf(async function* ({ messages }) {
      assert.equal(++inside, 1, "two calls asked the model at once");
      await turns(2);
      yield { type: "text", text: `to ${lines(messages).at(-1)}` };
      inside -= 1;
    });
    const options = { name: "helper", model, store };
    const agents = [await createAgent(options), await createAgent(options)];
    const questions = Array.from({ length: 40 }, (_, n) => `q${n}`);
    await Promise.all(questions.map((it, n) => agents[n % 2].call(it, { sessionId: "s" })));
    const history = lines(await agents[0].history({ sessionId: "s" }));
    assert.deepEqual(lines(await agents[1].history({ sessionId: "s" })), history);
    const asked = history.filter((_, index) => index % 2 === 0);
    assert.deepEqual(
      history.filter((_, index) => index % 2 === 1),
      asked.map((it) => `assistant: to ${it}`),
    );
    assert.deepEqual([...asked].sort(), questions.map((it) => `user: ${it}`).sort());
    const { context } = await agents[1].getAgentState({ sessionId: "s" });
    assert.deepEqual(lines(context), history);
  },
);

story(
  "agents with different names share a store without sharing sessions",
  async ({ createAgent, memoryStore, echo, assert }) => {
    const store = memoryStore();
    const [one, other] = await Promise.all(
      ["one", "other"].map((name) => createAgent({ name, model: echo(), store })),
    );
    await one.call("mine", { sessionId: "s" });
    assert.deepEqual(await other.history({ sessionId: "s" }), []);
    assert.deepEqual(await other.listSessions(null), []);
  },
);

story(
  "a session is found again by another agent of the same name over the same store",
  async ({ createAgent, memoryStore, echo, lines, assert }) => {
    const store = memoryStore();
    const first = await createAgent({ name: "helper", model: echo(), store });
    await first.call("remember me", { sessionId: "s", userId: "alice" });
    const second = await createAgent({ name: "helper", model: echo(), store });
    const reply = await second.call("again", { sessionId: "s", userId: "alice" });
    assert.equal(reply.text, "you said again");
    const said = [
      "user: remember me",
      "assistant: you said remember me",
      "user: again",
      "assistant: you said again",
    ];
    assert.deepEqual(lines(await second.history({ sessionId: "s", userId: "alice" })), said);
    assert.deepEqual(await second.history({ sessionId: "s" }), []);
  },
);

story("R12: ids that look alike are different sessions", async ({ createAgent, echo, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  const ids = [
    "a",
    "A",
    "a ",
    "a/b",
    "a-2fb",
    "..",
    "é",
    "e\u0301",
    "t.a",
    "anonymous",
    "x".repeat(256),
    "😀",
  ];
  for (const sessionId of ids)
    await agent.call(`in ${sessionId}`, { sessionId, userId: sessionId });
  for (const sessionId of ids) {
    const [question, answer, ...rest] = await agent.history({ sessionId, userId: sessionId });
    assert.equal(question.content[0].text, `in ${sessionId}`);
    assert.equal(answer.content[0].text, `you said in ${sessionId}`);
    assert.equal(rest.length, 0);
    assert.deepEqual(
      (await agent.listSessions(sessionId)).map((it) => it.sessionId),
      [sessionId],
    );
  }
  assert.deepEqual(await agent.listSessions(null), []);
});

story(
  "R11: a call without a session uses the default session, if the agent has one",
  async ({ createAgent, echo, rejection, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo(), defaultSessionId: "home" });
    assert.equal((await agent.call("hello")).text, "you said hello");
    assert.equal((await agent.history({ sessionId: "home" })).length, 2);
    const homeless = await createAgent({ name: "helper", model: echo() });
    assert.equal((await rejection(homeless.call("hello"))).code, "ID_INVALID");
    const strict = await createAgent({ name: "helper", model: echo(), requireUserId: true });
    assert.equal((await rejection(strict.call("hello", { sessionId: "s" }))).code, "ID_INVALID");
  },
);

story(
  "S-04: a repeated callId returns the stored outcome without a model request",
  async ({ createAgent, scriptedModel, rejection, assert }) => {
    const model = scriptedModel(["first", "second"]);
    const agent = await createAgent({ name: "helper", model });
    const context = { sessionId: "s", callId: "call-1" };
    const reply = await agent.call("hello", context);
    const again = await agent.call("hello", context);
    assert.deepEqual(again, reply);
    assert.equal(model.requests.length, 1);
    const error = await rejection(agent.call("something else", context));
    assert.equal(error.code, "INPUT_INVALID");
    assert.ok(error.hint);
    assert.equal((await agent.history(context)).length, 2);
    assert.equal((await agent.call("hello", { ...context, sessionId: "other" })).text, "second");
  },
);

story(
  "ten calls at once with the same callId are one turn",
  async ({ createAgent, scriptedModel, assert }) => {
    const model = scriptedModel(["only once"]);
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s", callId: "call-1" };
    const replies = await Promise.all(Array.from({ length: 10 }, () => agent.call("hello", slot)));
    assert.deepEqual(new Set(replies.map(({ text }) => text)), new Set(["only once"]));
    assert.equal((await agent.history(slot)).length, 2);
  },
);

story(
  "G-06: a call on a full queue is refused with BUSY and stores nothing",
  async ({ createAgent, modelOf, signpost, rejection, lines, assert }) => {
    const gate = signpost();
    const model = modelOf(async function* () {
      await gate.passed;
      yield { type: "text", text: "answer" };
    });
    const agent = await createAgent({ name: "helper", model, queueLimit: 2 });
    const calls = ["q1", "q2", "q3"].map((input) => agent.call(input, { sessionId: "s" }));
    const error = await rejection(agent.call("q4", { sessionId: "s" }));
    assert.equal(error.code, "BUSY");
    assert.equal(error.status, 429);
    assert.ok(error.retryable && error.hint);
    const other = agent.call("elsewhere", { sessionId: "other" });
    gate.pass();
    await Promise.all([...calls, other]);
    const asked = lines(await agent.history({ sessionId: "s" })).filter((it) =>
      it.startsWith("user"),
    );
    assert.deepEqual(asked, ["user: q1", "user: q2", "user: q3"]);
    assert.equal((await agent.call("q5", { sessionId: "s" })).text, "answer");
  },
);

story(
  "a deleted session is gone, may be deleted again, and starts empty",
  async ({ createAgent, echo, lines, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const slot = { sessionId: "s", userId: "alice" };
    await agent.deleteSession(slot);
    await agent.call("before", slot);
    await agent.deleteSession(slot);
    await agent.deleteSession(slot);
    assert.deepEqual(await agent.history(slot), []);
    assert.deepEqual(await agent.listSessions("alice"), []);
    assert.equal((await agent.getAgentState(slot)).version, 0);
    await agent.call("after", slot);
    const said = ["user: after", "assistant: you said after"];
    assert.deepEqual(lines(await agent.history(slot)), said);
    assert.deepEqual(lines((await agent.getAgentState(slot)).context), said);
  },
);

story(
  "S-14: deleting a session ends its calls with NO_SUCH_SESSION, and nothing of them stays stored",
  async ({ createAgent, endless, rejection, lines, assert }) => {
    const { model, reached } = endless("fresh");
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s" };
    const running = rejection(agent.call("running", slot));
    const waiting = rejection(agent.call("waiting", slot));
    await reached;
    await agent.deleteSession(slot);
    assert.equal((await running).code, "NO_SUCH_SESSION");
    assert.equal((await waiting).code, "NO_SUCH_SESSION");
    assert.deepEqual(await agent.history(slot), []);
    assert.deepEqual(await agent.listSessions(null), []);
    await agent.call("new", slot);
    assert.deepEqual(lines(await agent.history(slot)), ["user: new", "assistant: fresh"]);
  },
);

story(
  "a call made during a deletion waits for it and starts an empty session",
  async ({ createAgent, endless, rejection, lines, assert }) => {
    const { model, reached } = endless("fresh");
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s" };
    const running = rejection(agent.call("old", slot));
    await reached;
    const deleted = agent.deleteSession(slot);
    const reply = await agent.call("new", slot);
    await deleted;
    assert.equal((await running).code, "NO_SUCH_SESSION");
    assert.equal(reply.text, "fresh");
    assert.deepEqual(lines(await agent.history(slot)), ["user: new", "assistant: fresh"]);
  },
);
