// A process that dies during a streamed answer: the question and the answer up to the last checkpoint stay.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { packedModule, project } from "../support/project.mjs";

const slot = { userId: "alice", sessionId: "s" };
const KILLS = 20;

// Streams "w0 w1 w2 …" without end. Prints the last stored word after each checkpoint, and a line when the answer begins.
const program = `
import { createAgent, customModel } from "lockgate";
import { fileStore } from "lockgate/stores/node";
import fs from "node:fs";
const { folder, question, checkpointMs, listens, pauses } = JSON.parse(process.env.GIVEN);
const said = (text) => fs.writeSync(1, text + "\\n");
const model = customModel({
  id: "endless",
  async *generate() {
    for (let n = 0; ; n++) {
      if (n === 2) said("streaming");
      await new Promise((resolve) => setTimeout(resolve, pauses && n > 1 ? 10_000 : 2));
      yield { type: "text", text: "w" + n + " " };
    }
  },
});
const files = fileStore(folder);
const commit = async (batch) => {
  const done = await files.commit(batch);
  const pieces = batch.put.filter(({ key }) => key.includes("/partial/"));
  for (const { value } of done === "ok" ? pieces : []) {
    const words = new TextDecoder().decode(value).match(/w\\d+(?= )/g) ?? [];
    if (words.length > 0) said("stored " + words.at(-1));
  }
  return done;
};
const store = { name: files.name, capabilities: files.capabilities, get: (keys) => files.get(keys), list: (prefix, page) => files.list(prefix, page), commit };
const agent = await createAgent({ name: "helper", model, store, checkpointMs });
if (listens) process.on("SIGTERM", () => said("told"));
const call = agent.stream(question, { userId: "alice", sessionId: "s" });
for await (const event of call) if (event.type === "error") said(event.error.code);
`;

/** Starts the program. `until` resolves with the printed lines when the last of them passes. */
async function begin(t, given) {
  const file = path.join(await project(), `checkpoints-${process.hrtime.bigint()}.mjs`);
  fs.writeFileSync(file, program);
  const env = { ...process.env, NODE_OPTIONS: "", GIVEN: JSON.stringify(given) };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] });
  let [text, complaints, look] = ["", "", () => {}];
  child.stdout.on("data", (more) => look((text += more)));
  child.stderr.on("data", (more) => (complaints += more));
  const ended = new Promise((resolve) => child.on("close", () => resolve(complaints)));
  t.after(() => child.kill("SIGKILL"));
  const lines = () => text.split("\n").slice(0, -1);
  const until = async (passes) => {
    const seen = new Promise((resolve) => (look = () => lines().some(passes) && resolve()));
    look();
    await Promise.race([seen, ended.then((why) => assert.fail(`the process ended:\n${why}${text}`))]);
  };
  return { child, lines, until, ended };
}

const wordsUpTo = (n) => Array.from({ length: n + 1 }, (_, each) => `w${each} `).join("");
const lastStored = (lines) => Number(lines.findLast((line) => line.startsWith("stored ")).slice("stored w".length));

async function reader(t, folder) {
  const { createAgent, textOf } = await packedModule("lockgate");
  const { scriptedModel } = await packedModule("lockgate/testing");
  const { fileStore } = await packedModule("lockgate/stores/node");
  const agent = await createAgent({ name: "helper", model: scriptedModel(["the end"]), store: fileStore(folder) });
  t.after(() => agent.close());
  const told = async () => (await agent.history(slot)).map((message) => ({ ...message, text: textOf(message) }));
  return { agent, told };
}

function place(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-checkpoints-"));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test(`after ${KILLS} kills at random moments of streamed answers, each question is there with its answer up to the last checkpoint`, { timeout: 180_000 }, async (t) => {
  const folder = place(t);
  const stored = [];
  for (let nth = 0; nth < KILLS; nth++) {
    const { child, lines, until, ended } = await begin(t, { folder, question: `question ${nth}`, checkpointMs: 20 });
    await until((line) => line.startsWith("stored "));
    await new Promise((resolve) => setTimeout(resolve, 120 * Math.random()));
    child.kill("SIGKILL");
    await ended;
    stored.push(lastStored(lines()));
  }
  const { agent, told } = await reader(t, folder);
  const seen = await told();
  await agent.call("and now?", slot);
  const history = await told();
  assert.deepEqual(history.slice(0, seen.length).map(({ id }) => id), seen.map(({ id }) => id), "the log has what readers saw before");
  for (const [nth, last] of stored.entries()) {
    const at = history.findIndex(({ text }) => text === `question ${nth}`);
    assert.equal(history[at].turn, "interrupted");
    const answer = history[at + 1];
    assert.equal(answer.role, "assistant");
    const n = answer.text.trim().split(" ").length - 1;
    assert.equal(answer.text, wordsUpTo(n), "a part is missing or doubled");
    assert.ok(n >= last, `word ${last} of question ${nth} was stored, and ${n} is the last`);
  }
  assert.equal(history.at(-1).text, "the end");
  const keys = (await fs.promises.readdir(folder, { recursive: true })).filter((name) => name.includes("partial"));
  assert.deepEqual(keys, []);
});

test("a signal that the program handles itself stores what is new in the answer, and the call runs on", async (t) => {
  const folder = place(t);
  const { child, until, ended } = await begin(t, { folder, question: "go", checkpointMs: 600_000, listens: true, pauses: true });
  await until((line) => line === "streaming");
  const { told } = await reader(t, folder);
  child.kill("SIGTERM");
  await until((line) => line.startsWith("stored "));
  const history = await told();
  assert.deepEqual(history.map(({ text }) => text), ["go", "w0 w1 "]);
  child.kill("SIGKILL");
  await ended;
});
