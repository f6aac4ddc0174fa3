// Reading sessions with the packed package: states, lists and histories by page. Reading stores nothing.
import { story } from "../support/project.mjs";

story(
  "reading a session that does not exist stores nothing",
  async ({ createAgent, echo, watched, assert }) => {
    const { store, count } = watched();
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const slot = { sessionId: "nowhere", userId: "alice" };
    const state = await agent.getAgentState(slot);
    assert.equal(state.version, 0);
    assert.equal(state.session_id, "nowhere");
    assert.equal(state.user_id, "alice");
    assert.deepEqual(state.context, []);
    assert.equal(state.shutdown_interrupted, false);
    assert.deepEqual(await agent.history(slot), []);
    assert.deepEqual(await agent.listSessions("alice"), []);
    assert.equal(await agent.session(slot), null);
    assert.equal(count.commit, 0);
    assert.ok(count.get > 0);
    // A tombstone is left on purpose: a call that is being accepted at the same time must not create the session later.
    await agent.deleteSession(slot);
    assert.equal(count.commit, 1);
    assert.deepEqual(await agent.listSessions("alice"), []);
  },
);

story(
  "the version and revision of a state change with every call",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const states = [];
    for (const input of ["q1", "q2", "q3"]) {
      const { version } = await agent.call(input, { sessionId: "s" });
      states.push(await agent.getAgentState({ sessionId: "s" }));
      assert.equal(states.at(-1).version, version);
    }
    const versions = states.map(({ version }) => version);
    assert.ok(versions[0] > 0 && versions[0] < versions[1] && versions[1] < versions[2]);
    assert.equal(new Set(states.map(({ revision }) => revision)).size, 3);
  },
);

story(
  "sessions are listed newest first, page by page, each once",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const names = Array.from({ length: 25 }, (_, n) => `s${n}`);
    const clock = Date.now;
    let now = clock();
    Date.now = () => (now += 1);
    for (const sessionId of names)
      await agent.call(`about ${sessionId}`, { sessionId, userId: "alice" });
    await agent.call("not alice's", { sessionId: "s0", userId: "bob" });
    await agent.call("again", { sessionId: "s3", userId: "alice" });
    Date.now = clock;
    const pages = [];
    let after;
    do {
      pages.push(await agent.listSessions("alice", { limit: 10, after }));
      after = pages.at(-1).at(-1)?.cursor;
    } while (pages.at(-1).length === 10);
    assert.deepEqual(
      pages.map((page) => page.length),
      [10, 10, 5],
    );
    const newest = ["s3", ...names.filter((name) => name !== "s3").reverse()];
    assert.deepEqual(
      pages.flat().map(({ sessionId }) => sessionId),
      newest,
    );
    assert.deepEqual(pages.flat(), await agent.listSessions("alice"));
    const [first] = pages[0];
    assert.equal(first.title, "about s3");
    assert.equal(first.summary, "you said again");
    assert.equal(first.messages, 4);
    assert.equal(first.userId, "alice");
    assert.equal(first.running, false);
    assert.ok(first.createdAt < first.updatedAt);
  },
);

story(
  "a session is listed as running during a call",
  async ({ createAgent, endless, assert }) => {
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("hello", { sessionId: "s" });
    await reached;
    assert.deepEqual(
      (await agent.listSessions(null)).map(({ running }) => running),
      [true],
    );
    call.stop();
    await call.result;
    assert.deepEqual(
      (await agent.listSessions(null)).map(({ running }) => running),
      [false],
    );
  },
);

story("history is read backwards, page by page", async ({ createAgent, echo, lines, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo("to ") });
  const slot = { sessionId: "s" };
  for (let n = 0; n < 6; n++) await agent.call(`q${n}`, slot);
  const whole = await agent.history(slot);
  assert.equal(whole.length, 12);
  const pages = [];
  let before;
  do {
    pages.unshift(await agent.history(slot, { limit: 5, before }));
    before = pages[0][0]?.id;
  } while (pages[0].length === 5);
  assert.deepEqual(
    pages.map((page) => page.length),
    [2, 5, 5],
  );
  assert.deepEqual(lines(pages.flat()), lines(whole));
  assert.equal(new Set(whole.map(({ id }) => id)).size, 12);
});
