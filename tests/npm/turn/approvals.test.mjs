// Approvals over a real Redis: asked in one process, answered in another; the tool runs once, whichever process dies.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { after, before, describe, test } from "node:test";
import { openHere } from "../support/processes.mjs";
import { packedModule, project } from "../support/project.mjs";
import { folder, startRedis, withoutRedis } from "../support/servers.mjs";

const { createAgent, tool, textOf } = await packedModule("lockgate");
const { scriptedModel } = await packedModule("lockgate/testing");

// A process that asks or approves. The tool records that it ran; in a process that will be killed it never returns.
const program = `
import { appendFileSync } from "node:fs";
import { createAgent, tool } from "lockgate";
import { scriptedModel } from "lockgate/testing";
import { openStore } from "./open-store.mjs";
const { description, slot, asks, ran, hangs } = JSON.parse(process.env.PART);
const { store, close } = await openStore(description);
const send = tool({
  name: "send",
  description: "sends",
  inputSchema: { type: "object" },
  needsApproval: true,
  async execute() {
    appendFileSync(ran, process.pid + "\\n");
    if (hangs) {
      process.stdout.write("running\\n");
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    }
    return "sent";
  },
});
const script = asks ? [{ toolCalls: [{ name: "send", input: {}, id: "c1" }] }] : ["done"];
const agent = await createAgent({ name: "helper", model: scriptedModel(script), tools: [send], store });
const outcome = asks ? agent.call("send it", slot) : agent.confirm(slot, [{ toolCallId: "c1", approve: true }]).result;
process.stdout.write(await outcome.then(({ reason }) => reason, ({ code }) => code));
await agent.close();
await close();
`;

describe("approvals over Redis", { skip: withoutRedis }, () => {
  let redis, description, here, file;
  before(async () => {
    redis = await startRedis();
    description = { kind: "redis", place: redis.url };
    here = await openHere(description);
    file = path.join(await project(), "approve.mjs");
    fs.writeFileSync(file, program);
  });
  after(async () => {
    await here?.close();
    await redis?.stop();
  });

  const begin = (part) => {
    const env = { ...process.env, NODE_OPTIONS: "", PART: JSON.stringify({ description, ...part }) };
    const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (text) => (said += text));
    return { child, ended: once(child, "close").then(() => said) };
  };
  const count = (ran) => (fs.existsSync(ran) ? fs.readFileSync(ran, "utf8").trim().split("\n").length : 0);
  const agentHere = (script) => {
    const send = tool({ name: "send", description: "sends", inputSchema: { type: "object" }, needsApproval: true, execute: () => "sent here" });
    return createAgent({ name: "helper", model: scriptedModel(script), tools: [send], store: here.store });
  };

  // A-13, R40
  test("a question asked in one process is answered in others, and several approvals run the tool once", async () => {
    const part = { slot: { userId: "alice", sessionId: "many" }, ran: path.join(folder("ran"), "ran") };
    assert.equal(await begin({ ...part, asks: true }).ended, "asking");
    const agent = await agentHere([]);
    assert.equal((await agent.asks(part.slot)).length, 1);
    const outcomes = await Promise.all([1, 2, 3].map(() => begin(part).ended));
    assert.deepEqual(outcomes.sort(), ["NOT_ASKING", "NOT_ASKING", "stop"]);
    assert.equal(count(part.ran), 1);
    assert.deepEqual(await agent.asks(part.slot), []);
    await agent.close();
  });

  //
  test("an approval is used up if the process is killed right after it: the tool does not run again, and the model is told", async () => {
    const part = { slot: { userId: "alice", sessionId: "killed" }, ran: path.join(folder("ran"), "ran") };
    await begin({ ...part, asks: true }).ended;
    const { child, ended } = begin({ ...part, hangs: true });
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await ended;
    assert.equal(count(part.ran), 1);
    const agent = await agentHere(["I will look first"]);
    assert.deepEqual(await agent.asks(part.slot), [], "an answered question is closed");
    const again = await agent.confirm(part.slot, [{ toolCallId: "c1", approve: true }]).result.catch((error) => error);
    assert.equal(again.code, "NOT_ASKING");
    assert.equal((await agent.call("and?", part.slot)).text, "I will look first");
    const [result] = (await agent.history(part.slot)).flatMap(({ content }) => content.filter(({ type }) => type === "tool_result"));
    assert.equal(result.state, "interrupted");
    assert.match(textOf(result.output), /not known what became of this call/);
    assert.equal(count(part.ran), 1);
    await agent.close();
  });
});
