// What is seen of a session while its call runs, and after the process of the call was killed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { packedModule, project, story } from "../support/project.mjs";
import { folder } from "../support/servers.mjs";

story(
  "a question is in the history, the counts, the list, a search and every export while its call runs",
  async ({ createAgent, memoryStore, endless, echo, textOf, assert }) => {
    const store = memoryStore();
    const slot = { userId: "ada", sessionId: "s" };
    await (await createAgent({ name: "helper", model: echo(), store })).call("hello", slot);
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model, store });
    const call = agent.stream("where is the albatross?", slot);
    await reached;
    const history = await agent.history(slot);
    assert.deepEqual(history.map(({ turn }) => turn), [undefined, undefined, "open"]);
    const { id } = history[2];
    assert.deepEqual((await agent.history(slot, { before: id, limit: 1 })).map((it) => textOf(it)), ["you said hello"]);
    const [line] = await agent.listSessions("ada");
    for (const info of [line, await agent.session(slot)]) {
      const { title, summary, messages, running, interrupted } = info;
      assert.deepEqual([title, summary, messages, running, interrupted], ["hello", "where is the albatross?", 3, true, false]);
    }
    for (const where of [{ userId: "ada" }, slot]) {
      assert.deepEqual((await agent.search("albatross", where)).map(({ messageId }) => messageId), [id]);
    }
    for (const format of ["lockgate", "agentscope", "markdown"]) assert.ok((await agent.exportSession(slot, format)).includes("albatross"), format);
    assert.match(await agent.exportSession(slot, "markdown"), /\(interrupted\)\n\nwhere is the albatross\?/);
    for (const format of ["lockgate", "agentscope"]) {
      const to = { userId: "ada", sessionId: format };
      await agent.importSession(to, await agent.exportSession(slot, format));
      const texts = (await agent.history(to)).map((it) => textOf(it));
      assert.deepEqual(texts.slice(0, 3), ["hello", "you said hello", "where is the albatross?"]);
    }
    // A fork waits for the call of this agent, so the answer that was stopped is cut off at the question.
    const fork = agent.fork(slot, { userId: "ada", sessionId: "f" }, { upTo: id });
    call.stop();
    assert.equal((await fork).messages, 3);
    assert.equal((await agent.history(slot)).find((it) => it.id === id).turn, "interrupted");
  },
);

story(
  "a failed question says why, and what is put, appended or imported cannot say it",
  async ({ createAgent, modelOf, rejection, assert }) => {
    const model = modelOf(async function* () {
      throw Object.assign(new Error("the key is wrong"), { status: 401 });
    });
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s" };
    const { code } = await rejection(agent.call("first", slot));
    const [question] = await agent.history(slot);
    assert.deepEqual([question.turn, question.turnError.code], ["failed", code]);
    assert.equal(typeof question.turnError.message, "string");
    assert.equal((await agent.session(slot)).interrupted, false);
    await agent.append(slot, [{ role: "user", content: "by hand", turn: "open" }]);
    const state = await agent.getAgentState(slot);
    await agent.putAgentState(slot, { ...state, context: state.context.map((message) => ({ ...message, turn: "open" })) });
    await agent.importSession({ sessionId: "t" }, JSON.stringify({ ...state, context: state.context.map((message) => ({ ...message, turn: "open" })) }));
    for (const sessionId of ["s", "t"]) {
      const turns = (await agent.history({ sessionId })).map(({ turn }) => turn);
      assert.ok(!turns.includes("open"), `${sessionId}: ${turns}`);
    }
  },
);

const slot = { userId: "ada", sessionId: "s" };

const program = `
import { createAgent, customModel } from "lockgate";
import { fileStore } from "lockgate/stores/node";
const model = customModel({
  id: "endless",
  async *generate() {
    yield { type: "text", text: "half an answer" };
    process.stdout.write("talking\\n");
    await new Promise(() => {});
  },
});
const agent = await createAgent({ name: "helper", model, store: fileStore(process.env.FOLDER) });
setInterval(() => {}, 1_000);
await agent.call("are you there?", ${JSON.stringify(slot)});
`;

test("another process sees a question as open while its process runs, as interrupted when that was killed, and resumes it", async () => {
  const { createAgent, customModel, textOf } = await packedModule("lockgate");
  const { fileStore } = await packedModule("lockgate/stores/node");
  const place = folder("visible");
  const file = path.join(await project(), "visible-talk.mjs");
  fs.writeFileSync(file, program);
  const child = spawn(process.execPath, [file], { env: { ...process.env, NODE_OPTIONS: "", FOLDER: place }, stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(child, "close");
  await once(child.stdout, "data");
  const model = customModel({
    id: "here",
    async *generate() {
      yield { type: "text", text: "I am" };
    },
  });
  const agent = await createAgent({ name: "helper", model, store: fileStore(place) });
  const seen = async (sessionId = "s") => {
    const to = { ...slot, sessionId };
    const [question] = await agent.history(to);
    const { running, interrupted } = await agent.session(to);
    const line = (await agent.listSessions("ada")).find((info) => info.sessionId === sessionId);
    assert.deepEqual([line.running, line.interrupted], [running, interrupted]);
    return [textOf(question), question.turn, running, interrupted];
  };
  assert.deepEqual(await seen(), ["are you there?", "open", true, false]);
  const [{ id }] = await agent.history(slot);
  await agent.fork(slot, { ...slot, sessionId: "fork" }, { upTo: id });
  assert.deepEqual(await seen("fork"), ["are you there?", "interrupted", false, true]);
  child.kill("SIGKILL");
  await gone;
  assert.deepEqual(await seen(), ["are you there?", "interrupted", false, true]);
  assert.equal((await agent.search("there", { userId: "ada" })).length, 2);
  for (const sessionId of ["s", "fork"]) {
    assert.equal((await agent.resume({ ...slot, sessionId }).result).text, "I am");
    assert.deepEqual(await seen(sessionId), ["are you there?", undefined, false, false]);
  }
  await agent.close();
});
