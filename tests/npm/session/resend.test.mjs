// `resend`, branches and forks, with the packed package.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { story, tell } from "../support/project.mjs";

story(
  "R70: a resend starts from the state before the last question, and the old answer stays as a branch",
  async ({ createAgent, modelOf, memoryStore, lines, readAll, rejection, assert }) => {
    const shown = [];
    const model = modelOf(async function* ({ messages }) {
      shown.push(messages.map(({ id }) => id));
      yield { type: "text", text: `answer ${shown.length}` };
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const slot = { sessionId: "s", userId: "alice" };
    const early = agent.resend(slot);
    assert.equal((await rejection(early.result)).code, "NO_ANCHOR");
    assert.equal((await rejection(readAll(agent.resend(slot)))).status, 409);
    assert.deepEqual(await agent.branches(slot), []);
    await agent.call("first", slot);
    const { messages } = await agent.call("second", slot);
    const changed = [];
    agent.subscribe(slot, ({ type, info }) => type === "session-changed" && !info.running && changed.push(info.branches));

    const call = agent.resend(slot);
    const events = await readAll(call);
    assert.deepEqual(shown[2], shown[1]);
    const { messages: accepted } = events.find(({ type }) => type === "accepted");
    assert.deepEqual(accepted, [messages[0]]);
    assert.equal((await call.result).text, "answer 3");
    const edited = await agent.resend(slot, { input: "second, please" }).result;
    assert.equal(edited.text, "answer 4");
    assert.deepEqual(lines(await agent.history(slot)), ["user: first", "assistant: answer 1", "user: second, please", "assistant: answer 4"]);

    const listed = await agent.branches(slot);
    assert.deepEqual(listed.map(({ text, current }) => [text, current]), [["answer 2", false], ["answer 3", false], ["answer 4", true]]);
    assert.deepEqual(listed.map(({ parent }) => parent), [null, listed[0].id, listed[0].id]);
    assert.deepEqual(listed.map(({ messageId }) => messageId), [messages[0].id, messages[0].id, edited.messages[0].id]);
    const old = await agent.history(slot, { branch: listed[0].id });
    assert.deepEqual(old.slice(2), messages);
    assert.deepEqual((await agent.history(slot, { branch: listed[0].id, before: messages[0].id, limit: 1 })).length, 1);
    await agent.switchBranch(slot, listed[0].id);
    assert.deepEqual(await agent.history(slot), old);
    assert.equal((await agent.session(slot)).branches, 2);
    await agent.drain();
    // The end of each resend, and the switch.
    assert.deepEqual(changed, [1, 2, 2]);
    assert.equal((await rejection(agent.switchBranch(slot, "none"))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.switchBranch(slot, 5))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.switchBranch({ sessionId: "none" }, "x"))).code, "NO_SUCH_SESSION");
    assert.equal((await rejection(agent.history(slot, { branch: "none" }))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.resend(slot, { input: 5 }).result)).code, "INPUT_INVALID");
  },
);

story(
  "R70: after a resend that fails or is aborted the old answer stays current, and a callId is answered once",
  async ({ createAgent, modelOf, memoryStore, lines, rejection, signpost, assert }) => {
    const begun = signpost();
    let asked = 0;
    const model = modelOf(async function* (_, { signal }) {
      asked += 1;
      yield { type: "text", text: `answer ${asked}` };
      if (asked === 2) throw Object.assign(new Error("no"), { status: 400 });
      if (asked !== 3) return;
      begun.pass();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const slot = { sessionId: "s" };
    await agent.call("question", slot);
    const before = await agent.getAgentState(slot);
    const failed = await rejection(agent.resend(slot).result);
    assert.equal(failed.partial.content[0].text, "answer 2");
    const stop = new AbortController();
    const aborted = agent.resend(slot, { signal: stop.signal });
    await begun.passed;
    stop.abort();
    assert.equal((await rejection(aborted.result)).name, "AbortError");
    const { context } = await agent.getAgentState(slot);
    assert.deepEqual(context, before.context);
    assert.deepEqual((await agent.branches(slot)).map(({ current }) => current), [true, false, false]);
    const named = { callId: "again" };
    const [one, two] = [await agent.resend(slot, named).result, await agent.resend(slot, named).result];
    assert.deepEqual([one.text, two.text, asked], ["answer 4", "answer 4", 4]);
    assert.deepEqual(lines(await agent.history(slot)), ["user: question", "assistant: answer 4"]);
  },
);

story(
  "R70: the option persistence decides what a resend rolls back",
  async ({ createAgent, scriptedModel, statePersistence, memoryStore, rejection, assert }) => {
    const switches = (group) => ({ toolCalls: [{ name: "reset_equipped_tools", input: { to_activate: [group] } }] });
    const groups = async (persistence) => {
      const model = scriptedModel([switches("b"), "one", "two"]);
      const toolGroups = ["a", "b"].map((name) => ({ name, description: name, tools: [], active: name === "a" }));
      const agent = await createAgent({ name: "helper", model, toolGroups, metaTool: true, store: memoryStore(), ...persistence });
      const slot = { sessionId: "s" };
      const active = async () => (await agent.getAgentState(slot)).tool_context.activated_groups.join();
      await agent.call("question", slot);
      const after = await active();
      await agent.resend(slot).result;
      return [after, await active(), (await agent.history(slot)).length];
    };
    assert.deepEqual(await groups({}), ["b", "a", 2]);
    assert.deepEqual(await groups({ persistence: statePersistence.all() }), ["b", "a", 2]);
    // A field that is not rolled back is not stored either: it has the value from the start of the session.
    assert.deepEqual(await groups({ persistence: statePersistence.conversationOnly() }), ["a", "a", 2]);
    assert.deepEqual(await groups({ persistence: statePersistence.none() }), ["a", "a", 6]);
    const wrong = { name: "helper", model: scriptedModel([]), persistence: { task: true } };
    assert.equal((await rejection(createAgent(wrong))).hint, "did you mean tasks?");
    assert.equal((await rejection(createAgent({ ...wrong, persistence: true }))).code, "OPTIONS");
  },
);

story(
  "R70: fifty resends of a compacted session begin with the same state, and every branch can be read and switched to",
  async ({ createAgent, modelOf, memoryStore, assert }) => {
    const [begun, summaries] = [[], []];
    let answers = 0;
    const model = modelOf(async function* () {
      yield { type: "text", text: `answer ${(answers += 1)}` };
    });
    const summariser = modelOf(async function* () {
      summaries.push(answers);
      yield { type: "text", text: "what was said" };
    });
    const look = { name: "look", onCall: (_, { state }) => void begun.push(structuredClone({ ...state, version: 0, revision: "" })) };
    const compaction = { triggerMessages: 6, keepMessages: 2, model: summariser };
    const agent = await createAgent({ name: "helper", model, middleware: [look], compaction, store: memoryStore() });
    const slot = { sessionId: "s", userId: "alice" };
    for (let n = 0; n < 8; n++) await agent.call(`question ${n} ${"of many words ".repeat(20)}`, slot);
    assert.ok(summaries.length >= 2);
    const before = begun.at(-1);
    assert.notEqual(before.summary, "");
    for (let n = 0; n < 50; n++) {
      await agent.resend(slot).result;
      assert.deepEqual(begun.at(-1), before);
    }
    const listed = await agent.branches(slot);
    assert.equal(listed.length, 51);
    const histories = await Promise.all(listed.map(({ id }) => agent.history(slot, { branch: id })));
    assert.deepEqual(new Set(histories.map((messages) => messages.length)), new Set([16]));
    assert.equal(new Set(histories.map((messages) => messages.at(-1).content[0].text)).size, 51);
    for (let n = 0; n < 10; n++) {
      await agent.switchBranch(slot, listed[n].id);
      assert.deepEqual(await agent.history(slot), histories[n]);
    }
    await agent.switchBranch(slot, listed.at(-1).id);
    assert.deepEqual(await agent.branches(slot), listed);
  },
);

story(
  "a session can be forked at each message, and a fork never replaces anything",
  async ({ createAgent, echo, memoryStore, rejection, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
    const slot = { sessionId: "s", userId: "alice" };
    assert.equal((await rejection(agent.fork(slot, { sessionId: "t" }))).code, "NO_SUCH_SESSION");
    for (const text of ["one", "two", "three"]) await agent.call(text, slot);
    const whole = await agent.history(slot);
    const told = [];
    agent.subscribe({ userId: "bob" }, ({ type, info }) => type === "session-changed" && told.push(info.sessionId));
    for (const [n, { id }] of whole.entries()) {
      const to = { sessionId: `fork ${n}`, userId: "bob" };
      const info = await agent.fork(slot, to, { upTo: id });
      assert.deepEqual([info.sessionId, info.userId, info.messages, info.branches], [to.sessionId, "bob", n + 1, 0]);
      assert.deepEqual(await agent.history(to), whole.slice(0, n + 1));
      assert.deepEqual((await agent.getAgentState(to)).context, whole.slice(0, n + 1));
      assert.equal((await agent.call("and?", to)).text, "you said and?");
    }
    await agent.drain();
    assert.deepEqual([...new Set(told)].sort(), whole.map((_, n) => `fork ${n}`));
    const copy = { sessionId: "copy", userId: "alice" };
    await agent.fork(slot, copy);
    assert.equal((await agent.resend(copy).result).text, "you said three");
    assert.deepEqual(await agent.history(slot), whole);
    assert.equal((await rejection(agent.fork(slot, copy))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.fork(slot, { sessionId: "x" }, { upTo: "none" }))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.fork(slot, { sessionId: "x" }, { upTo: 5 }))).code, "INPUT_INVALID");
    assert.equal((await rejection(agent.fork(slot, { sessionId: "" }))).code, "ID_INVALID");
  },
);

story(
  "G-05: a tool that resends in its own session or switches its branch gets REENTRANT at once",
  async ({ createAgent, tool, scriptedModel, memoryStore, rejection, assert }) => {
    const own = { sessionId: "s", userId: "alice" };
    const codes = [];
    let agent;
    const self = tool({
      name: "self",
      description: "changes its own session",
      inputSchema: { type: "object" },
      async execute() {
        const attempts = [agent.resend(own).result, agent.switchBranch(own, "x"), agent.fork(own, { sessionId: "t" }), agent.fork({ sessionId: "t" }, own)];
        for (const attempt of attempts) codes.push((await rejection(attempt)).code);
        return "done";
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "self", input: {} }] }, "ok"]);
    agent = await createAgent({ name: "helper", model, tools: [self], store: memoryStore() });
    await agent.call("go", own);
    assert.deepEqual(codes, ["REENTRANT", "REENTRANT", "REENTRANT", "REENTRANT"]);
  },
);

test("R70: a resend works after a restart, and every branch is still there", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-resend-"));
  const work = async ({ createAgent, scriptedModel, lines }, { folder, says }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const agent = await createAgent({ name: "helper", model: scriptedModel([says]), store: fileStore(folder) });
    const slot = { sessionId: "s", userId: "alice" };
    const isFirst = (await agent.session(slot)) === null;
    await (isFirst ? agent.call("question", slot) : agent.resend(slot).result);
    const branches = await agent.branches(slot);
    const told = lines(await agent.history(slot));
    await agent.close();
    return { told, texts: branches.map(({ text, current }) => [text, current]) };
  };
  try {
    for (const says of ["one", "two"]) await tell(work, { folder, says });
    const { told, texts } = await tell(work, { folder, says: "three" });
    assert.deepEqual(told, ["user: question", "assistant: three"]);
    assert.deepEqual(texts, [["one", false], ["two", false], ["three", true]]);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

story(
  "R70: an \"always allow\" is not taken back by a resend, and a revoked one does not come back with its branch",
  async ({ createAgent, scriptedModel, statePersistence, tool, memoryStore, rejection, assert }) => {
    const post = tool({ name: "post", description: "Posts.", inputSchema: { type: "object" }, needsApproval: true, execute: () => "posted" });
    const allowed = async (persistence) => {
      const posts = { toolCalls: [{ name: "post", input: {} }] };
      const model = scriptedModel([posts, "one", posts, "two"]);
      const agent = await createAgent({ name: "helper", model, tools: [post], store: memoryStore(), ...persistence });
      const slot = { sessionId: "s" };
      await agent.call("post it", slot);
      const answers = (await agent.asks(slot)).map(({ toolCallId }) => ({ toolCallId, approve: true, remember: [{ tool_name: "post", behavior: "allow" }] }));
      await agent.confirm(slot, answers).result;
      const { reason } = await agent.resend(slot).result;
      const rules = async () => (await agent.getAgentState(slot)).permission_context.allow_rules.length;
      const found = [reason, await rules()];
      if (reason === "asking") return found;
      const state = await agent.getAgentState(slot);
      await agent.putAgentState(slot, { ...state, permission_context: { ...state.permission_context, allow_rules: [] } });
      const other = (await agent.branches(slot)).find(({ current }) => !current);
      await agent.switchBranch(slot, other.id);
      return [...found, await rules()];
    };
    assert.deepEqual(await allowed({}), ["stop", 1, 0]);
    assert.deepEqual(await allowed({ persistence: { permissions: "keep" } }), ["stop", 1, 0]);
    assert.deepEqual(await allowed({ persistence: statePersistence.all() }), ["asking", 0]);
    const wrong = { name: "helper", model: scriptedModel([]), persistence: { permissions: "always" } };
    assert.equal((await rejection(createAgent(wrong))).code, "OPTIONS");
  },
);

story(
  "a question that the provider rejects stays in the history, and is left out of later requests",
  async ({ createAgent, customModel, memoryStore, LockgateError, textOf, rejection, lines, assert }) => {
    const shown = [];
    const generate = async function* ({ messages }) {
      shown.push(messages.map(textOf));
      if (messages.some((message) => textOf(message) === "poison")) throw new LockgateError("MODEL_BAD_REQUEST", "it has no image");
      yield { type: "text", text: `answer ${shown.length}` };
    };
    const agent = await createAgent({ name: "helper", model: customModel({ id: "picky", generate }), store: memoryStore() });
    const slot = { sessionId: "s" };
    await agent.call("first", slot);
    assert.equal((await rejection(agent.call("poison", slot))).code, "MODEL_BAD_REQUEST");
    await agent.call("third", slot);
    assert.deepEqual(shown.at(-1), ["first", "answer 1", "third"]);
    const history = await agent.history(slot);
    assert.deepEqual(lines(history), ["user: first", "assistant: answer 1", "user: poison", "user: third", "assistant: answer 3"]);
    assert.deepEqual(history[2].turnError, { code: "MODEL_BAD_REQUEST", message: "it has no image" });
  },
);

story(
  "resend({ from }) answers an earlier question again, also inside a summary, and everything after it stays as a branch",
  async ({ createAgent, modelOf, memoryStore, textOf, rejection, lines, assert }) => {
    const shown = [];
    const model = modelOf(async function* ({ messages }) {
      shown.push(messages.map(textOf));
      yield { type: "text", text: `answer ${shown.length}` };
    });
    const summariser = modelOf(async function* () {
      yield { type: "text", text: "they talked" };
    });
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model, store, compaction: { model: summariser, keepMessages: 2, triggerMessages: 0, triggerTokens: 0 } });
    const slot = { sessionId: "s" };
    for (const n of [1, 2, 3, 4]) await agent.call(`question ${n} ${"word ".repeat(100)}`, slot);
    const before = await agent.history(slot);
    await agent.compact(slot);
    assert.equal((await agent.getAgentState(slot)).summary, "they talked");
    const from = before[2].id;
    const { text } = await agent.resend(slot, { from }).result;
    assert.equal(text, "answer 5");
    assert.deepEqual(shown[4], shown[1], "the model gets the same request as then");
    assert.equal((await agent.history(slot)).length, 4);
    const other = (await agent.branches(slot)).find(({ current }) => !current);
    assert.deepEqual(lines(await agent.history(slot, { branch: other.id })), lines(before));
    const again = await createAgent({ name: "helper", model, store });
    await again.resend(slot, { from: before[0].id, input: "another beginning" }).result;
    assert.deepEqual(lines(await again.history(slot)), ["user: another beginning", "assistant: answer 6"]);
    for (const wrong of ["nobody", before[1].id, from]) {
      const error = await rejection(agent.resend(slot, { from: wrong }).result);
      assert.equal(error.code, "INPUT_INVALID", wrong);
      assert.match(error.hint, /history\(slot\)/);
    }
    assert.equal((await rejection(agent.resend(slot, { from: 7 }).result)).code, "INPUT_INVALID");
  },
);
