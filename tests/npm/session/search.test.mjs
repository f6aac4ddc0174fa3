// Search with the packed package: by the host, by the model, on any store.
import { story } from "../support/project.mjs";

story("a fact of turn 7 is found at the end, through an index that was written after the replies", async ({ createAgent, echo, watched, assert }) => {
  const { store } = watched();
  const agent = await createAgent({ name: "helper", model: echo(), store });
  const slot = { userId: "alice", sessionId: "s1" };
  for (let n = 0; n < 200; n++) await agent.call(n === 7 ? "my boat is called Albatross" : `turn ${n}, nothing new`, slot);
  await agent.drain();
  const segments = (await store.list("")).filter(({ key }) => key.includes("/search/"));
  assert.ok(segments.length > 0 && segments.length % 32 === 0, `one record per bucket, not ${segments.length}`);
  const hits = await agent.search("albatross", { userId: "alice" });
  assert.deepEqual(hits.map(({ excerpt }) => excerpt).sort(), ["my boat is called Albatross", "you said my boat is called Albatross"]);
  const history = await agent.history(slot, { limit: 1000 });
  for (const { slot: of, messageId, role, at, score } of hits) {
    assert.deepEqual(of, slot);
    const message = history.find(({ id }) => id === messageId);
    assert.deepEqual([role, at], [message.role, message.at]);
    assert.ok(score > 0);
  }
});

story("only one writer at a time writes the search index, even if many calls end meanwhile", async ({ createAgent, echo, mapStore, assert }) => {
  const store = mapStore();
  const written = [];
  const commit = async (batch) => {
    const segments = batch.put.map(({ key }) => key).filter((key) => key.includes("/search/"));
    // Here two calls end at the same time, and only one may write the index.
    if (segments.length > 0) await new Promise((resolve) => setTimeout(resolve));
    const landed = await store.commit(batch);
    if (landed === "ok") written.push(...segments);
    return landed;
  };
  const agent = await createAgent({ name: "helper", model: echo(), store: { ...store, commit } });
  const slot = { userId: "alice", sessionId: "s1" };
  for (let n = 0; n < 400; n++) await agent.append(slot, [{ role: "user", content: `note ${n}` }]);
  for (let n = 0; n < 40; n++) {
    await agent.call(`turn ${n}`, slot);
    // The pause in which background work after the reply starts.
    await new Promise((resolve) => setTimeout(resolve));
  }
  await agent.drain();
  assert.ok(written.length > 0);
  assert.equal(new Set(written).size, written.length, "no segment was written twice");
  assert.ok((await agent.search("note 399", { userId: "alice" })).length > 0);
});

story("a search covers one user or one session, with as many hits as requested", async ({ createAgent, echo, refusal, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo("noted: ") });
  for (const userId of ["alice", "bob"]) {
    for (const sessionId of ["s1", "s2"]) await agent.call(`a secret of ${userId} in ${sessionId}`, { userId, sessionId });
  }
  const found = async (options) => (await agent.search("secret", options)).map(({ slot }) => `${slot.userId}/${slot.sessionId}`);
  assert.deepEqual(new Set(await found({ userId: "alice" })), new Set(["alice/s1", "alice/s2"]));
  assert.deepEqual(new Set(await found({ userId: "bob", sessionId: "s2" })), new Set(["bob/s2"]));
  assert.equal((await found({ userId: "alice", limit: 1 })).length, 1);
  assert.deepEqual(await found({ userId: "carol" }), []);
  assert.deepEqual(await agent.search("?!", { userId: "alice" }), []);
  const refused = async (...given) => (await refusal(() => agent.search(...given))).code;
  assert.equal(await refused("secret"), "ID_INVALID");
  assert.equal(await refused("secret", { userId: "" }), "ID_INVALID");
  assert.equal(await refused(7, { userId: "alice" }), "INPUT_INVALID");
  assert.equal(await refused("secret", { userId: "alice", limit: 0 }), "INPUT_INVALID");
});

story("without a userId only the session itself is searched, unless the store belongs to one browser", async ({ createAgent, echo, refusal, mapStore, assert }) => {
  for (const shared of ["process", "host", "cluster", "origin"]) {
    const store = mapStore();
    const agent = await createAgent({ name: "helper", model: echo(), store: { ...store, capabilities: { ...store.capabilities, shared } } });
    for (const sessionId of ["s1", "s2"]) await agent.call(`the word of ${sessionId}`, { sessionId });
    const own = await agent.search("word", { userId: null, sessionId: "s1" });
    assert.ok(own.length === 2 && own.every(({ slot }) => slot.sessionId === "s1"), shared);
    if (shared === "origin") assert.equal((await agent.search("word", { userId: null })).length, 4);
    else assert.equal((await refusal(() => agent.search("word", { userId: null }))).code, "INPUT_INVALID", shared);
  }
});

story("the model lists, reads and searches its user's sessions, unless the option is off", async ({ createAgent, modelOf, resultsIn, textOf, assert }) => {
  const wishes = [
    ["session_list", {}],
    ["session_history", { sessionId: "s1", lastN: 1 }],
    ["session_search", { query: "albatross" }],
  ];
  const seen = [];
  const model = modelOf(async function* ({ messages, tools }) {
    seen.push(tools.map(({ name }) => name));
    const n = resultsIn(messages).length;
    if (!textOf(messages[0]).startsWith("look") || n === wishes.length) return yield { type: "text", text: "noted" };
    const [name, input] = wishes[n];
    yield { type: "tool-call", index: 0, id: `c${n}`, name, arguments: JSON.stringify(input) };
  });
  const agent = await createAgent({ name: "helper", model });
  await agent.call("my boat is called Albatross", { userId: "alice", sessionId: "s1" });
  await agent.call("mine is an albatross too", { userId: "bob", sessionId: "s9" });
  await agent.call("look it up", { userId: "alice", sessionId: "s2" });
  const [listed, shown, found] = resultsIn(await agent.history({ userId: "alice", sessionId: "s2" })).map(({ output }) => JSON.parse(textOf(output)));
  assert.deepEqual(listed.map(({ sessionId }) => sessionId).sort(), ["s1", "s2"]);
  assert.deepEqual(shown.map(({ role, text }) => [role, text]), [["assistant", "noted"]]);
  assert.deepEqual(found.map(({ sessionId, excerpt }) => [sessionId, excerpt]), [["s1", "my boat is called Albatross"]]);
  assert.deepEqual(seen[0], wishes.map(([name]) => name));
  const without = await createAgent({ name: "helper", model, sessionTools: false });
  await without.call("hello", { userId: "alice", sessionId: "s1" });
  assert.deepEqual(seen.at(-1), []);
});

story("a search index that is slow or cannot be written delays no reply and fails no call", async ({ createAgent, echo, watched, signpost, turns, assert }) => {
  const { passed: allowed, pass } = signpost();
  let held = 0;
  const isIndex = ({ put }) => put.some(({ key }) => key.includes("/search/"));
  const { store } = watched({
    commit: async (batch, next) => {
      if (!isIndex(batch)) return next();
      if (++held === 1) throw new Error("there is no room");
      await allowed;
      return next();
    },
  });
  const agent = await createAgent({ name: "helper", model: echo(), store });
  const slot = { userId: "alice", sessionId: "s1" };
  for (let n = 0; n < 140; n++) {
    assert.equal((await agent.call(`turn ${n}`, slot)).reason, "stop");
    // The index is written while no call runs.
    if (n === 69) await agent.drain();
  }
  await turns(50);
  assert.ok(held >= 2, "the index was not tried again");
  assert.equal((await agent.search("139", { userId: "alice", limit: 5 })).length, 2);
  pass();
  await agent.drain();
  assert.ok((await store.list("")).some(({ key }) => key.includes("/search/")));
});
