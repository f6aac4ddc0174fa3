// Sessions that are moved as documents, and states that are put back, with the packed package in Node and in workerd.
import assert from "node:assert/strict";
import { test } from "node:test";
import { story } from "../support/project.mjs";
import { startWorker } from "../support/worker.mjs";

story(
  "a compacted session with branches moves whole through a document: summary, undo, branches and resend",
  async ({ createAgent, customModel, memoryStore, lines, assert }) => {
    const model = customModel({ id: "brief", async *generate() { yield { type: "text", text: "well" }; } });
    const options = { name: "helper", model, compaction: { keepMessages: 2 } };
    const agent = await createAgent({ ...options, store: memoryStore() });
    const slot = { userId: "alice", sessionId: "s" };
    for (let n = 0; n < 5; n++) await agent.call(`question ${n} ${"with many words ".repeat(20)}`, slot);
    await agent.resend(slot, { input: "another question" }).result;
    await agent.compact(slot);
    const document = await agent.exportSession(slot);
    const other = await createAgent({ ...options, store: memoryStore() });
    const info = await other.importSession(slot, document);
    assert.deepEqual([info.messages, info.branches, info.running, info.asking], [10, 1, false, false]);
    assert.deepEqual(JSON.parse(await other.exportSession(slot)), JSON.parse(document));
    const facts = async (one) => {
      const { summary, context } = await one.getAgentState(slot);
      return { summary, context, history: await one.history(slot), branches: await one.branches(slot) };
    };
    assert.deepEqual(await facts(other), await facts(agent));
    assert.notEqual((await facts(other)).summary, "");
    await other.undoCompaction(slot);
    const undone = await other.getAgentState(slot);
    assert.deepEqual([undone.summary, undone.context.length], ["", 10]);
    await other.switchBranch(slot, (await other.branches(slot)).find(({ current }) => !current).id);
    assert.match(lines(await other.history(slot)).at(-2), /question 4/);
    await other.resend(slot).result;
    assert.equal((await other.history(slot)).length, 10);
    assert.match(await other.exportSession(slot, "markdown"), /^# question 0/);
    // The document of AgentScope keeps the summary too.
    const reference = JSON.parse(await agent.exportSession(slot, "agentscope"));
    const theirs = { ...slot, sessionId: "theirs" };
    await other.importSession(theirs, JSON.stringify(reference));
    assert.equal((await other.getAgentState(theirs)).summary, reference.summary);
    assert.deepEqual(JSON.parse(await other.exportSession(theirs, "agentscope")), { ...reference, session_id: "theirs" });
  },
);

story(
  "an open approval moves through a document, is asking in the list, and is answered there",
  async ({ createAgent, customModel, tool, memoryStore, assert }) => {
    let runs = 0;
    const send = () => tool({ name: "send", description: "sends", inputSchema: { type: "object" }, needsApproval: true, execute: () => ++runs });
    const model = customModel({
      id: "asks",
      async *generate({ messages }) {
        if (messages.at(-1).role === "user") yield { type: "tool-call", id: "c1", name: "send", input: {} };
        else yield { type: "text", text: "sent" };
      },
    });
    const slot = { userId: "alice", sessionId: "s" };
    const agent = await createAgent({ name: "helper", model, tools: [send()], store: memoryStore() });
    assert.equal((await agent.call("send it", slot)).reason, "asking");
    const other = await createAgent({ name: "helper", model, tools: [send()], store: memoryStore() });
    assert.equal((await other.importSession(slot, await agent.exportSession(slot))).asking, true);
    assert.equal((await other.listSessions("alice"))[0].asking, true);
    const [{ toolCallId }] = await other.asks(slot);
    const { text } = await other.confirm(slot, [{ toolCallId, approve: true }]).result;
    assert.deepEqual([text, runs], ["sent", 1]);
  },
);

story("a document whose parts do not fit is refused with the place, and nothing is stored", async ({ createAgent, echo, mapStore, rejection, assert }) => {
  const store = mapStore();
  const agent = await createAgent({ name: "helper", model: echo(), store });
  const slot = { userId: "alice", sessionId: "s" };
  await agent.call("one", slot);
  await agent.call("two", slot);
  const document = JSON.parse(await agent.exportSession(slot));
  const n = (await store.list("")).length;
  const [[first], [second]] = document.entries;
  document.entries[0][1].parent = second;
  const error = await rejection(agent.importSession({ ...slot, sessionId: "ring" }, JSON.stringify(document)));
  assert.equal(error.code, "INPUT_INVALID");
  assert.match(error.message, /at entries\[0\]\[1\]\.parent: expected/);
  assert.ok(error.hint && first);
  assert.equal((await store.list("")).length, n);
});

story(
  "a state that is put back changes nothing, and a changed one logs only what is new",
  async ({ createAgent, customModel, memoryStore, assert }) => {
    const model = customModel({ id: "brief", async *generate() { yield { type: "text", text: "well" }; } });
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), compaction: { keepMessages: 2 } });
    const slot = { userId: "alice", sessionId: "s" };
    for (let n = 0; n < 5; n++) await agent.call(`question ${n} ${"with many words ".repeat(20)}`, slot);
    await agent.compact(slot);
    const state = await agent.getAgentState(slot);
    await agent.putAgentState(slot, state);
    assert.equal((await agent.getAgentState(slot)).revision, state.revision);
    await agent.putAgentState(slot, { ...state, summary: "my own summary" });
    const put = await agent.getAgentState(slot);
    assert.deepEqual([put.summary, put.context.length], ["my own summary", state.context.length]);
    const ids = (await agent.history(slot)).map(({ id }) => id);
    assert.deepEqual([ids.length, new Set(ids).size], [10, 10]);
    await agent.resend(slot).result;
    assert.equal((await agent.getAgentState(slot)).summary, "my own summary");
    await agent.undoCompaction(slot);
    assert.equal((await agent.getAgentState(slot)).summary, "");
  },
);

test("in workerd too, a compacted session moves whole through a document", async (context) => {
  const { miniflare } = await startWorker(`
    import { createAgent, customModel, memoryStore } from "lockgate";
    const model = customModel({ id: "m", async *generate({ messages }) { yield { type: "text", text: "said " + messages.length }; } });
    export default { async fetch() {
      const make = () => createAgent({ name: "helper", model, store: memoryStore(), compaction: { keepMessages: 2 } });
      const [agent, other] = [await make(), await make()];
      const slot = { userId: "alice", sessionId: "s" };
      for (let n = 0; n < 4; n++) await agent.call("question " + n + " with many words".repeat(20), slot);
      await agent.compact(slot);
      const document = await agent.exportSession(slot);
      await other.importSession(slot, document);
      const same = JSON.stringify(await other.history(slot)) === JSON.stringify(await agent.history(slot));
      const { summary } = await other.getAgentState(slot);
      await other.undoCompaction(slot);
      const { context } = await other.getAgentState(slot);
      return Response.json({ same, summary, again: (await agent.exportSession(slot)) === document, n: context.length });
    } };
  `);
  context.after(() => miniflare.dispose());
  const answer = await (await miniflare.dispatchFetch("http://x.test/")).json();
  assert.deepEqual([answer.same, answer.again, answer.n], [true, true, 8]);
  assert.ok(answer.summary.length > 0);
});
