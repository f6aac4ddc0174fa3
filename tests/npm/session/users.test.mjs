// The data of a user, with the packed package: listed, exported, deleted.
import { story } from "../support/project.mjs";

story("users are listed by page, with their sessions counted", async ({ createAgent, echo, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  const longId = "u".repeat(200);
  for (const userId of ["alice", "bob", longId, null]) {
    for (let n = 0; n < 3; n++) await agent.call("hello", { userId, sessionId: `s${n}` });
  }
  await agent.call("hello", { userId: "gone", sessionId: "s" });
  await agent.deleteSession({ userId: "gone", sessionId: "s" });
  const all = await agent.listUsers();
  assert.deepEqual(new Set(all.map(({ userId }) => userId)), new Set(["alice", "bob", longId, null]));
  assert.ok(all.every(({ sessions, updatedAt }) => sessions === 3 && !Number.isNaN(Date.parse(updatedAt))));
  const paged = [];
  for (let after; ; ) {
    const [user] = await agent.listUsers({ limit: 1, ...(after && { after }) });
    if (user === undefined) break;
    paged.push(user);
    after = user.cursor;
  }
  assert.deepEqual(paged, all);
});

story(
  "G-13: deleting a user ends the user's calls, waits for no other user, and leaves no record of any kind",
  async ({ createAgent, endless, mapStore, rejection, assert }) => {
    const store = mapStore();
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model, store });
    const alice = (sessionId) => ({ userId: "alice", sessionId });
    const running = agent.call("tell me", { ...alice("s"), callId: "named" });
    await reached;
    const waiting = agent.call("and then?", alice("s"));
    const [other] = await Promise.all([agent.call("hello", { userId: "bob", sessionId: "s" }), agent.call("hello", alice("t"))]);
    await agent.deleteUser("alice");
    assert.equal((await rejection(running)).code, "NO_SUCH_SESSION");
    assert.equal((await rejection(waiting)).code, "NO_SUCH_SESSION");
    assert.equal(other.reason, "stop");
    const keys = (await store.list("")).map(({ key }) => key);
    assert.ok(keys.length > 0 && keys.every((key) => key.includes("/t.bob/")), keys.join("\n"));
    assert.deepEqual(await agent.listSessions("alice"), []);
    assert.equal((await agent.call("new", alice("s"))).version, 2);
    assert.equal((await agent.listSessions("bob")).length, 1);
    await agent.deleteUser("nobody");
  },
);

story("all sessions of a user can be exported and imported, one session per line", async ({ createAgent, echo, lines, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  for (let n = 0; n < 3; n++) await agent.call(`hello ${n}`, { userId: "alice", sessionId: `s${n}` });
  let text = "";
  for await (const line of agent.exportUser("alice")) text += line;
  const documents = text.trimEnd().split("\n");
  assert.equal(documents.length, 3);
  for (const document of documents) {
    const { state } = JSON.parse(document);
    const slot = { userId: "carol", sessionId: state.session_id };
    await agent.importSession(slot, document);
    assert.deepEqual(lines(await agent.history(slot)), lines(await agent.history({ ...slot, userId: "alice" })));
  }
});
