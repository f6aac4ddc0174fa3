// The rights of users over their data: deletion, export, and no unlimited storage.
import { story } from "../support/project.mjs";

story(
  "P-05: after deleteSession and deleteUser no byte of the messages is left in the store's files, and other users' data is unchanged",
  async ({ createAgent, scriptedModel, assert }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const [fs, path] = [await import("node:fs"), await import("node:path")];
    const filesWith = (word) =>
      fs.readdirSync("kept", { recursive: true }).filter((name) => {
        const file = path.join("kept", name);
        return fs.statSync(file).isFile() && fs.readFileSync(file).includes(word);
      });
    const words = { alice: "canary-7731", gone: "canary-4405", bob: "canary-9012" };
    const answer = ({ messages }) => `it was ${JSON.stringify(messages.at(-1).content)}`;
    const model = scriptedModel(Array.from({ length: 60 }, () => answer));
    const store = fileStore("./kept");
    const agent = await createAgent({ name: "helper", model, store, workspace: true, memory: true, taskList: true, planMode: true });
    for (const [userId, word] of [["alice", words.alice], ["bob", words.bob]]) {
      for (const sessionId of ["s0", "s1"]) await agent.call(`${word} is worth being remembered for long`, { userId, sessionId, callId: sessionId });
      await agent.files.write(userId, "notes.md", `${word} in a file`);
    }
    const alice = (sessionId) => ({ userId: "alice", sessionId });
    await agent.call(`${words.gone} in a session that goes`, alice("s2"));
    await agent.renameSession(alice("s0"), `${words.alice} as a title`);
    await agent.resend(alice("s0")).result;
    await agent.fork(alice("s0"), alice("s3"));
    await agent.drain();
    for (const word of Object.values(words)) assert.notDeepEqual(filesWith(word), [], `${word} was never stored`);
    await agent.deleteSession(alice("s2"));
    await agent.deleteUser("alice");
    await agent.close();
    await store.close();
    assert.deepEqual([filesWith(words.gone), filesWith(words.alice)], [[], []]);
    const next = await createAgent({ name: "helper", model, workspace: true, store: fileStore("./kept") });
    assert.deepEqual(await next.listSessions("alice"), []);
    assert.deepEqual((await next.listUsers()).map(({ userId }) => userId), ["bob"]);
    assert.equal((await next.listSessions("bob")).length, 2);
    assert.match(await next.files.read("bob", "notes.md"), /canary-9012/);
  },
);

story("P-05: deleting a session leaves no key of it, except a marker without any of its text", async ({ createAgent, echo, mapStore, assert }) => {
  const store = mapStore();
  const agent = await createAgent({ name: "helper", model: echo(), store });
  const slot = { userId: "alice", sessionId: "secret" };
  await agent.call("canary-7731", { ...slot, callId: "named" });
  await agent.resend(slot).result;
  await agent.search("canary", { userId: "alice" });
  await agent.drain();
  await agent.deleteSession(slot);
  await agent.drain();
  const left = await store.list("");
  assert.deepEqual(left.map(({ key }) => key.split("/").slice(2).join("/")), ["slot/t.secret/head"]);
  const stone = new TextDecoder().decode(left[0].value);
  assert.doesNotMatch(stone, /canary|you said/);
  assert.ok(stone.length < 300, stone);
});

story("P-06: all sessions of a user are moved to another store and are the same there, except files", async ({ createAgent, echo, memoryStore, lines, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo(), workspace: true, store: memoryStore() });
  for (let n = 0; n < 5; n++) {
    for (let m = 0; m <= n; m++) await agent.call(`question ${m} of ${n}`, { userId: "alice", sessionId: `s${n}` });
  }
  let text = "";
  for await (const line of agent.exportUser("alice")) text += line;
  const other = await createAgent({ name: "elsewhere", model: echo(), store: memoryStore() });
  for (const document of text.trimEnd().split("\n")) {
    await other.importSession({ userId: "alice", sessionId: JSON.parse(document).state.session_id }, document);
  }
  assert.equal((await other.listSessions("alice")).length, 5);
  for (let n = 0; n < 5; n++) {
    const slot = { userId: "alice", sessionId: `s${n}` };
    assert.deepEqual(await other.history(slot), await agent.history(slot));
    assert.deepEqual(lines((await other.getAgentState(slot)).context), lines((await agent.getAgentState(slot)).context));
  }
  assert.equal((await other.call("and on", { userId: "alice", sessionId: "s4" })).text, "you said and on");
});

story("P-08: the host can find and delete unused sessions, and a running session is not touched", async ({ createAgent, endless, echo, memoryStore, assert }) => {
  const { model, reached } = endless("done");
  const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
  const slot = (userId, n) => ({ userId, sessionId: `s${n}` });
  for (const userId of ["alice", "bob"]) for (let n = 0; n < 130; n++) await agent.call("hello", slot(userId, n));
  const running = agent.call("takes long", { ...slot("bob", 7), model });
  await reached;
  // Nothing is deleted automatically. This is the example of www/docs/keeping-and-deleting.md.
  const sweep = async (before) => {
    for await (const { userId } of pages((page) => agent.listUsers(page))) {
      for await (const { sessionId, updatedAt, running } of pages((page) => agent.listSessions(userId, page))) {
        if (updatedAt < before && !running) await agent.deleteSession({ userId, sessionId });
      }
    }
  };
  async function* pages(list) {
    for (let after; ; ) {
      const page = await list({ limit: 50, ...(after && { after }) });
      yield* page;
      if (page.length < 50) return;
      after = page.at(-1).cursor;
    }
  }
  await sweep("2000-01-01T00:00:00Z");
  assert.equal((await agent.listSessions("alice", { limit: 500 })).length, 130);
  await sweep("2999-01-01T00:00:00Z");
  assert.deepEqual(await agent.listSessions("alice"), []);
  assert.deepEqual((await agent.listSessions("bob")).map(({ sessionId }) => sessionId), ["s7"]);
  await agent.interrupt(slot("bob", 7));
  assert.equal((await running).reason, "interrupted");
});
