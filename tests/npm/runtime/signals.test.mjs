// Processes that get a signal while calls run: the calls are saved, and the signal ends the process.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { packedModule, project, story } from "../support/project.mjs";

const slot = { userId: "alice", sessionId: "s" };

// `said` prints a line. A streamed answer begins with "once upon " and goes on when the line "go" arrives.
const program = `
import { createAgent, customModel, tool } from ENTRY;
import { fileStore } from "lockgate/stores/node";
import fs from "node:fs";
const { folder, work, agents = 1, options = {} } = JSON.parse(process.env.GIVEN);
const said = (text) => fs.writeSync(1, text + "\\n");
BEFORE
let go;
const gone = new Promise((resolve) => (go = resolve));
process.stdin.on("data", () => go());
const model = customModel({
  id: "story",
  async *generate({ messages, tools }, { signal }) {
    if (tools?.some(({ name }) => name === "work") && messages.at(-1).role === "user") {
      yield { type: "tool-call", index: 0, id: "c1", name: "work", arguments: "{}" };
      return yield { type: "finish", reason: "tool-calls" };
    }
    yield { type: "text", text: "once " };
    yield { type: "text", text: "upon " };
    await Promise.race([gone, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
    yield { type: "text", text: "a time" };
  },
});
const work_ = tool({ name: "work", description: "works", inputSchema: { type: "object" }, execute: async () => {
  said("working");
  await (work === "endless tool" ? new Promise(() => {}) : gone);
  said("worked");
  return "done";
} });
const store = fileStore(folder);
const make = (name) => createAgent({ name, model, store, tools: work?.includes("tool") ? [work_] : [], ...options });
const all = await Promise.all(Array.from({ length: agents }, (_, n) => make("agent" + n)));
const listeners = () => said("listeners " + process.listenerCount("SIGTERM") + " " + process.listenerCount("SIGINT"));
const follow = async (agent) => {
  let text = "";
  for await (const event of agent.stream("tell me", { userId: "alice", sessionId: "s" })) {
    if (event.type !== "text-delta") continue;
    text += event.delta;
    if (text === "once upon ") said("streaming");
  }
  said("answered");
};
listeners();
if (work === undefined) setInterval(() => {}, 1_000);
else {
  const following = Promise.all(all.map(follow));
  listeners();
  await following;
  listeners();
}
process.stdin.unref?.();
`;

/** Starts the program. `line` resolves when it has printed a line `times` times; `ended` with its exit code and signal. */
async function begin(t, given, { entry = "lockgate", before = "" } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-signals-"));
  const file = path.join(await project(), `signals-${process.hrtime.bigint()}.mjs`);
  fs.writeFileSync(file, program.replace("ENTRY", JSON.stringify(entry)).replace("BEFORE", before));
  const env = { ...process.env, NODE_OPTIONS: "", GIVEN: JSON.stringify({ folder, ...given }) };
  const child = spawn(process.execPath, [file], { env, stdio: ["pipe", "pipe", "pipe"] });
  const limit = setTimeout(() => child.kill("SIGKILL"), 60_000);
  let [text, complaints, look] = ["", "", () => {}];
  child.stdout.on("data", (more) => look((text += more)));
  child.stderr.on("data", (more) => (complaints += more));
  const ended = new Promise((resolve) =>
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      resolve({ code, signal, complaints, lines: text.trim().split("\n") });
    }),
  );
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
    fs.rmSync(folder, { recursive: true, force: true });
  });
  const line = async (wanted, times = 1) => {
    const seen = new Promise((resolve) => (look = () => text.split("\n").filter((each) => each === wanted).length >= times && resolve()));
    look();
    await Promise.race([seen, ended.then(({ complaints }) => assert.fail(`the process ended before it said "${wanted}":\n${complaints}${text}`))]);
  };
  return { child, folder, line, ended };
}

/** An agent of this process on the store of the program. */
async function reader(t, folder, name = "agent0") {
  const { createAgent, textOf } = await packedModule("lockgate");
  const { scriptedModel } = await packedModule("lockgate/testing");
  const { fileStore } = await packedModule("lockgate/stores/node");
  const agent = await createAgent({ name, model: scriptedModel(["there was an end"]), store: fileStore(folder) });
  t.after(() => agent.close());
  const told = async () => (await agent.history(slot)).map(({ role, content }) => `${role}: ${textOf({ content })}`);
  return { agent, told };
}

async function savedPartly(t, folder, name) {
  const { agent, told } = await reader(t, folder, name);
  assert.deepEqual(await told(), ["user: tell me", "assistant: once upon "]);
  assert.equal((await agent.getAgentState(slot)).shutdown_interrupted, true);
  return { agent, told };
}

for (const signal of ["SIGTERM", "SIGINT"]) {
  test(`${signal} during a streamed call saves the question and the partial answer, ends the process by ${signal}, and resume goes on`, async (t) => {
    const { child, folder, line, ended } = await begin(t, { work: "stream" });
    await line("streaming");
    child.kill(signal);
    const { code, signal: by, lines, complaints } = await ended;
    assert.deepEqual([code, by, complaints], [null, signal, ""]);
    assert.deepEqual(lines, ["listeners 0 0", "listeners 1 1", "streaming"], "nothing runs on after the signal");
    const { agent, told } = await savedPartly(t, folder);
    await agent.resume(slot).result;
    assert.equal((await told()).at(-1), "assistant: there was an end");
  });
}

test("a second SIGINT ends the process at once", async (t) => {
  const { child, line, ended } = await begin(t, { work: "endless tool" });
  await line("working");
  const start = performance.now();
  child.kill("SIGINT");
  // The process removes its listener when it has the first signal: repeat until one arrives after that.
  const again = setInterval(() => child.kill("SIGINT"), 20);
  const { signal } = await ended;
  clearInterval(again);
  assert.equal(signal, "SIGINT");
  assert.ok(performance.now() - start < 1_500, "it waited for the calls");
});

test("a tool that never ends does not hold the process for more than 5 s", async (t) => {
  const { child, folder, line, ended } = await begin(t, { work: "endless tool" });
  await line("working");
  const start = performance.now();
  child.kill("SIGTERM");
  assert.equal((await ended).signal, "SIGTERM");
  assert.ok(performance.now() - start < 6_000);
  const { agent, told } = await reader(t, folder);
  assert.equal((await told())[0], "user: tell me");
  assert.equal((await agent.getAgentState(slot)).shutdown_interrupted, true);
});

test("a hook that never ends does not hold the process for more than 5 s", async (t) => {
  const before = `options.middleware = [{ name: "stuck", onEnd: () => new Promise(() => {}) }];`;
  const { child, folder, line, ended } = await begin(t, { work: "stream" }, { before });
  await line("streaming");
  const start = performance.now();
  child.kill("SIGTERM");
  assert.equal((await ended).signal, "SIGTERM");
  assert.ok(performance.now() - start < 6_000);
  await savedPartly(t, folder);
});

test("a tool that ends soon is not stopped, and its result is saved", async (t) => {
  const { child, folder, line, ended } = await begin(t, { work: "tool" });
  await line("working");
  child.kill("SIGTERM");
  child.stdin.write("go\n");
  const { signal, lines } = await ended;
  assert.deepEqual([signal, lines.includes("worked")], ["SIGTERM", true]);
  const { agent } = await reader(t, folder);
  const [result] = (await agent.history(slot)).flatMap(({ content }) => content.filter(({ type }) => type === "tool_result"));
  assert.deepEqual([result.state, result.output[0].text], ["success", "done"]);
});

test("all agents of a process share one listener, and all are saved", async (t) => {
  const { child, folder, line, ended } = await begin(t, { work: "stream", agents: 3 });
  await line("streaming", 3);
  child.kill("SIGTERM");
  const { signal, lines } = await ended;
  assert.equal(signal, "SIGTERM");
  assert.equal(lines[1], "listeners 1 1");
  for (const n of [0, 1, 2]) await savedPartly(t, folder, `agent${n}`);
});

for (const how of ["on", "once"]) {
  test(`with a listener of the host (${how}) the call runs on, and the host decides`, async (t) => {
    const before = `process.${how}("SIGTERM", () => said("host"));`;
    const { child, folder, line, ended } = await begin(t, { work: "stream" }, { before });
    await line("streaming");
    child.kill("SIGTERM");
    await line("host");
    child.stdin.end("go\n");
    const { code, signal, lines } = await ended;
    assert.deepEqual([code, signal], [0, null]);
    assert.ok(lines.includes("answered"));
    const { told } = await reader(t, folder);
    assert.deepEqual(await told(), ["user: tell me", "assistant: once upon a time"]);
  });
}

test("listeners of the package signal-exit, which only clean up, do not keep the calls from being saved", async (t) => {
  const before = `
    globalThis[Symbol.for("signal-exit emitter")] = { count: 1 };
    const clean = () => {
      if (process.listenerCount("SIGTERM") > 1) return;
      process.off("SIGTERM", clean);
      globalThis[Symbol.for("signal-exit emitter")].count = 0;
      said("cleaned");
      process.kill(process.pid, "SIGTERM");
    };
    process.on("SIGTERM", clean);`;
  const { child, folder, line, ended } = await begin(t, { work: "stream" }, { before });
  await line("streaming");
  child.kill("SIGTERM");
  const { signal, lines } = await ended;
  assert.deepEqual([signal, lines.at(-1)], ["SIGTERM", "cleaned"]);
  await savedPartly(t, folder);
});

test("where a signal without a listener does not end the process, as for the first process of a container, it exits with the code of the signal", async (t) => {
  const { child, folder, line, ended } = await begin(t, { work: "stream" }, { before: "process.kill = () => true;" });
  await line("streaming");
  child.kill("SIGTERM");
  const { code, lines } = await ended;
  assert.deepEqual([code, lines.at(-1)], [143, "streaming"]);
  await savedPartly(t, folder);
});

test("a subagent that goes on after the call of its parent is saved too", async (t) => {
  const before = `
    const worker = customModel({ id: "worker", async *generate(request, { signal }) {
      yield { type: "text", text: "halfway " };
      said("halfway");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    } });
    let asked = 0;
    const parent = customModel({ id: "parent", async *generate() {
      if (asked++ > 0) return yield { type: "text", text: "begun" };
      const input = { agent_id: "worker", task: "work", label: "child", timeout_seconds: 0 };
      yield { type: "tool-call", index: 0, id: "c1", name: "agent_spawn", arguments: JSON.stringify(input) };
      yield { type: "finish", reason: "tool-calls" };
    } });
    options.model = parent;
    options.subagents = [{ name: "worker", description: "works", model: worker }];`;
  const { child, folder, line, ended } = await begin(t, { work: "stream" }, { before });
  await line("answered");
  await line("halfway");
  child.kill("SIGTERM");
  const { signal, lines } = await ended;
  assert.deepEqual([signal, lines.at(-1)], ["SIGTERM", "listeners 1 1"]);
  const { fileStore } = await packedModule("lockgate/stores/node");
  const records = (await fileStore(folder).list("")).map(({ key, value }) => [key, new TextDecoder().decode(value)]);
  const ofChild = records.filter(([key, text]) => key.includes("/log/") && text.includes("halfway "));
  assert.equal(ofChild.length, 1, "the partial answer of the subagent is in the log");
  assert.match(ofChild[0][1], /SHUTTING_DOWN/);
});

test("a process without calls has no listener, before its first call and after its last, and a signal ends it as usual", async (t) => {
  const idle = await begin(t, {});
  await idle.line("listeners 0 0");
  idle.child.kill("SIGTERM");
  assert.equal((await idle.ended).signal, "SIGTERM");
  const { child, line, ended } = await begin(t, { work: "stream" });
  await line("streaming");
  child.stdin.end("go\n");
  assert.deepEqual((await ended).lines, ["listeners 0 0", "listeners 1 1", "streaming", "answered", "listeners 0 0"]);
});

test("shutdownSignals: false and other lists of signals are followed", async (t) => {
  const off = await begin(t, { work: "stream", options: { shutdownSignals: false } });
  await off.line("streaming");
  off.child.kill("SIGTERM");
  const { signal, lines } = await off.ended;
  assert.deepEqual([signal, lines], ["SIGTERM", ["listeners 0 0", "listeners 0 0", "streaming"]]);
  const hup = await begin(t, { work: "stream", options: { shutdownSignals: ["SIGHUP"] } });
  await hup.line("streaming");
  hup.child.kill("SIGHUP");
  assert.equal((await hup.ended).signal, "SIGHUP");
  await savedPartly(t, hup.folder);
});

test("lockgate/inline saves calls in Node too", async (t) => {
  const { child, folder, line, ended } = await begin(t, { work: "stream" }, { entry: "lockgate/inline" });
  await line("streaming");
  child.kill("SIGTERM");
  assert.equal((await ended).signal, "SIGTERM");
  await savedPartly(t, folder);
});

story("a signal that is unknown, or cannot be listened to, is refused with OPTIONS", async ({ createAgent, demoModel, refusal, assert }) => {
  for (const shutdownSignals of [["SIGKILL"], ["sigterm"], [15], "SIGTERM", 1, null]) {
    const error = await refusal(() => createAgent({ name: "agent", model: demoModel(), shutdownSignals }));
    assert.deepEqual([error.code, typeof error.hint], ["OPTIONS", "string"], JSON.stringify(shutdownSignals));
  }
  for (const shutdownSignals of [true, false, [], ["SIGTERM", "SIGHUP"]]) await createAgent({ name: "agent", model: demoModel(), shutdownSignals });
});
