// A parent with many subagents in the background, whose process is killed in the middle.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { packedModule, project } from "../support/project.mjs";

const CHILDREN = 20;
const slot = { userId: "alice", sessionId: "s" };

// Starts the subagents. Those with even numbers end at once, those with odd numbers never end.
const program = `
import { createAgent, customModel, textOf } from "lockgate";
import { fileStore } from "lockgate/stores/node";
import fs from "node:fs";
const { folder, log, children, dies } = JSON.parse(process.env.GIVEN);
const worker = customModel({
  id: "worker",
  async *generate({ messages }, { signal }) {
    const task = textOf(messages.at(-1));
    fs.appendFileSync(log, task + "\\n");
    if (Number(task.split(" ")[1]) % 2 === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    yield { type: "text", text: "result of " + task };
  },
});
let asked = 0;
const model = customModel({
  id: "parent",
  async *generate() {
    if (asked++ === 0) {
      for (let n = 0; n < children; n++) {
        const input = { agent_id: "worker", task: "task " + n, label: "child " + n, timeout_seconds: 0 };
        yield { type: "tool-call", index: n, id: "c" + n, name: "agent_spawn", arguments: JSON.stringify(input) };
      }
      return yield { type: "finish", reason: "tool-calls" };
    }
    // In the middle of the call, or after it.
    if (dies === "in its call") await new Promise(() => setInterval(() => {}, 1_000));
    yield { type: "text", text: "begun" };
  },
});
const agent = await createAgent({ name: "helper", model, store: fileStore(folder), subagents: [{ name: "worker", description: "works", model: worker }] });
const call = agent.call("go", ${JSON.stringify(slot)});
if (dies === "after its call") await call;
process.stdout.write("begun\\n");
setInterval(() => {}, 1_000);
`;

// R64
test("R64: a parent that is killed during its call gets each of its 20 subagents reported once: finished ones with their result, the others as lost, and none runs again", () => hearsOnce("in its call"));

// R64
test("R64: a parent that is killed after its call gets the result of each of its 20 subagents once, and none runs again", () => hearsOnce("after its call"));

async function hearsOnce(dies) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-killed-"));
  const log = path.join(folder, "begun.log");
  fs.writeFileSync(log, "");
  try {
    await killedOnce({ folder: path.join(folder, "store"), log, children: CHILDREN, dies });
    const begun = () => fs.readFileSync(log, "utf8").trim().split("\n");
    assert.equal(new Set(begun()).size, CHILDREN);
    const ended = await endedCalls(path.join(folder, "store"));
    const { createAgent, textOf } = await packedModule("lockgate");
    const { scriptedModel } = await packedModule("lockgate/testing");
    const { fileStore } = await packedModule("lockgate/stores/node");
    const worker = scriptedModel([]);
    const model = scriptedModel(["Heard.", "Again."]);
    const agent = await createAgent({ name: "helper", model, store: fileStore(path.join(folder, "store")), subagents: [{ name: "worker", description: "works", model: worker }] });
    await agent.call("and?", slot);
    await agent.call("and again?", slot);
    const history = await agent.history(slot);
    const texts = history.flatMap(({ name, content }) => {
      const results = content.filter(({ type, state }) => type === "tool_result" && state === "success");
      return name === "system" ? [textOf({ content })] : results.map(({ output }) => textOf(output));
    });
    const told = texts.filter((text) => /^status: (?!running)/m.test(text));
    for (let n = 0; n < CHILDREN; n++) {
      const ofChild = told.filter((text) => new RegExp(`^label: child ${n}$`, "m").test(text));
      assert.equal(ofChild.length, 1, `child ${n} was reported ${ofChild.length} times`);
      const [text] = ofChild;
      if (n % 2 === 1) assert.match(text, /status: lost/, `child ${n}`);
      else if (ended.has(n)) assert.match(text, new RegExp(`status: completed[^]*result of task ${n}$`));
      else assert.match(text, /status: (lost|completed)/);
    }
    assert.equal(begun().length, CHILDREN, "a subagent ran again");
    assert.equal(worker.requests.length, 0);
    assert.ok(ended.size > 0, "no subagent had ended before the kill");
    await agent.close();
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the program until every subagent with an even number is stored as ended, then kills it. */
async function killedOnce(given) {
  const file = path.join(await project(), `children-${process.hrtime.bigint()}.mjs`);
  fs.writeFileSync(file, program);
  const env = { ...process.env, NODE_OPTIONS: "", GIVEN: JSON.stringify(given) };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
  const closed = new Promise((resolve) => child.on("close", (code, signal) => resolve(signal)));
  const limit = setTimeout(() => child.kill("SIGKILL"), 120_000);
  await new Promise((resolve, reject) => {
    child.stdout.on("data", resolve);
    closed.then(() => reject(new Error("the process ended by itself")));
  });
  // Reads its store from outside until half of the ending subagents have ended, and all have started.
  while ((await endedCalls(given.folder)).size < given.children / 4) await new Promise((resolve) => setTimeout(resolve, 20));
  while (fs.readFileSync(given.log, "utf8").trim().split("\n").length < given.children) await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill("SIGKILL");
  assert.equal(await closed, "SIGKILL");
  clearTimeout(limit);
}

/** The numbers of the subagents whose call is stored as ended. */
async function endedCalls(folder) {
  const { fileStore } = await packedModule("lockgate/stores/node");
  const store = fileStore(folder);
  const text = ({ value }) => new TextDecoder().decode(value);
  const records = await store.list("");
  await store.close?.();
  const entries = records.filter(({ key }) => key.includes("/log/")).map(text);
  return new Set(entries.flatMap((entry) => entry.match(/(?<=result of task )\d+/g) ?? []).map(Number));
}
