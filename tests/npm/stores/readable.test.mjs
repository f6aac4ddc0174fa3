// Readable logs of the file store: what they contain, and that they equal the sessions after crashes, damage and deletion.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { packedModule, project } from "../support/project.mjs";
import { quickFolder } from "../support/servers.mjs";

const { createAgent, customModel, textOf, tool } = await packedModule("lockgate");
const { scriptedModel } = await packedModule("lockgate/testing");
const { fileStore } = await packedModule("lockgate/stores/node");

const echo = () =>
  customModel({
    id: "echo",
    async *generate({ messages }) {
      yield { type: "text", text: `to ${textOf(messages.findLast(({ role }) => role === "user"))}` };
    },
  });
const opened = (root, options = {}, readable = true) =>
  createAgent({ name: "helper", model: echo(), store: fileStore(root, { readable }), ...options });
const alice = { userId: "alice", sessionId: "s1" };

const sessionsOf = (root, user = "alice") => path.join(root, "agents", "helper", user, "sessions");
const logOf = (root, session = "s1", user = "alice") => path.join(sessionsOf(root, user), `${session}.log.jsonl`);
const linesIn = (file) => {
  const text = fs.readFileSync(file, "utf8");
  assert.ok(text.endsWith("\n"), "the last line is not whole");
  return text.slice(0, -1).split("\n").map((line) => JSON.parse(line));
};
const listIn = (root, user) => JSON.parse(fs.readFileSync(path.join(sessionsOf(root, user), "sessions.json"), "utf8"));
const historyOf = async (agent, slot) => {
  const messages = [];
  for (let before; ; before = messages[0].id) {
    const page = await agent.history(slot, { limit: 200, ...(before && { before }) });
    messages.unshift(...page);
    if (page.length < 200) return messages;
  }
};

/** Checks that a log has exactly the messages of a session that has one branch. */
async function assertEqual(agent, root, slot = alice) {
  const lines = linesIn(logOf(root, slot.sessionId, slot.userId));
  const messages = await historyOf(agent, slot);
  const seen = ({ id, role, at, content }) => ({ id, role, at, content });
  assert.deepEqual(lines.map(seen), messages.map(seen));
  assert.deepEqual(lines.map(({ text }) => text), messages.map((message) => textOf(message)));
  return lines;
}

/** The warnings of this process while `work` runs. */
async function warningsIn(work) {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on("warning", note);
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  return warnings.filter(({ code }) => code === "READABLE_LOGS");
}

test("a log has one line for each message of its session when a call resolves, and sessions.json one for each session", async () => {
  const root = quickFolder("log");
  const weather = tool({ name: "weather", description: "…", inputSchema: { type: "object" }, execute: () => "rain" });
  const model = scriptedModel([{ toolCalls: [{ name: "weather", input: { city: "Köln\u2028" } }] }, "It rains."]);
  const agent = await opened(root, { model, tools: [weather] });
  await agent.call("weather?", alice);
  const lines = await assertEqual(agent, root);
  assert.deepEqual(lines.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
  const ended = lines.map(({ outcome }) => outcome);
  assert.deepEqual(ended.slice(0, 3), [undefined, undefined, undefined]);
  assert.equal(typeof ended[3].reason, "string");
  await agent.append({ userId: "alice", sessionId: "s2" }, [{ role: "user", content: "noted" }]);
  await assertEqual(agent, root, { userId: "alice", sessionId: "s2" });
  const [second, first] = listIn(root);
  assert.equal(second.sessionId, "s2");
  const { cursor: _, running, ...info } = await agent.session(alice);
  for (const [name, value] of Object.entries(first).filter(([name]) => name !== "log")) assert.deepEqual(value, info[name], name);
  assert.deepEqual([first.title, first.messages, first.log, running], ["weather?", 4, "s1.log.jsonl", false]);
});

test("a failed turn has its error in the line of the question", async () => {
  const root = quickFolder("failed");
  const model = customModel({ id: "refuses", async *generate() { throw new Error("no"); } });
  const agent = await opened(root, { model });
  const { code } = await agent.call("hello", alice).then(assert.fail, (error) => error);
  await agent.session(alice);
  const [question] = linesIn(logOf(root));
  assert.equal(question.text, "hello");
  assert.equal(question.outcome.code, code);
});

test("a resend keeps the old answer in the log, and each line names its entry and the entry before", async () => {
  const root = quickFolder("branches");
  const agent = await opened(root, { model: scriptedModel(["one", "two", "three"]) });
  await agent.call("first", alice);
  await agent.call("second", alice);
  await agent.resend(alice).result;
  const lines = linesIn(logOf(root));
  assert.deepEqual(lines.map(({ text }) => text), ["first", "one", "second", "two", "second", "three"]);
  assert.equal(lines[2].parent, lines[1].entry);
  assert.equal(lines[4].parent, lines[1].entry);
  const ids = new Set((await historyOf(agent, alice)).map(({ id }) => id));
  const shown = lines.filter(({ id, entry }) => ids.has(id) && entry !== lines[2].entry);
  assert.deepEqual(shown.map(({ text }) => text), ["first", "one", "second", "three"]);
});

test("a compaction changes nothing in the log", async () => {
  const root = quickFolder("compacted");
  const agent = await opened(root, { model: scriptedModel(["one", "two", "three", "a summary", "four"]), compaction: { keepMessages: 1 } });
  for (const text of ["a", "b", "c"]) await agent.call(`${text} ${"long ".repeat(500)}`, alice);
  const before = fs.readFileSync(logOf(root), "utf8");
  await agent.compact(alice);
  assert.ok((await agent.getAgentState(alice)).summary);
  assert.equal(fs.readFileSync(logOf(root), "utf8"), before);
  await agent.call("d", alice);
  await assertEqual(agent, root);
});

test("without the option there is no folder of logs, and other options are refused", async () => {
  const root = quickFolder("off");
  const agent = await opened(root, {}, false);
  await agent.call("hello", alice);
  assert.ok(!fs.existsSync(path.join(root, "agents")));
  for (const options of [{ readable: 1 }, { readible: true }, null, "readable"])
    assert.throws(() => fileStore(root, options), { code: "OPTIONS" });
});

test("ids of every kind have logs of their own with plain names below the folder of their user", async () => {
  const root = quickFolder("ids");
  const ids = ["..", ".", "a/../b", "con", "CON", "nul.txt", "Alice", "alice", "ALICE", "größe", "gro\u0308ße", "日本語の長い名前です".repeat(3),
    "x".repeat(256), "-rf", ".hidden", "end.", "a b", "C:\\x", "%61", "a", "~", "anonymous", "sessions.json", "__proto__", "🦀", "0"];
  const agent = await opened(root, { name: "helper" });
  for (const id of ids) await agent.call(`I am ${id}`, { userId: id, sessionId: id });
  await agent.call("I am nobody", { sessionId: "s" });
  const agents = path.join(root, "agents", "helper");
  const users = fs.readdirSync(agents);
  assert.equal(users.length, ids.length + 1);
  assert.equal(new Set(users.map((name) => name.toLowerCase())).size, users.length, "two names differ only in case");
  const found = users.map((user) => {
    assert.match(user, /^(?!con$|nul$|\.|-)[a-z0-9_.%~-]{1,100}(?<!\.)$/);
    const [info, ...others] = listIn(root, user);
    assert.deepEqual(others, []);
    assert.deepEqual(fs.readdirSync(path.join(agents, user, "sessions")).sort(), [info.log, "sessions.json"].sort());
    assert.match(info.log, /^(?!con\.|nul\.|\.|-)[a-z0-9_.%~-]{1,120}$/);
    const [said] = linesIn(path.join(agents, user, "sessions", info.log));
    if (info.userId === null) return "nobody";
    assert.equal(said.text, `I am ${info.sessionId}`);
    if (!user.startsWith("~")) assert.equal(decodeURIComponent(user), info.userId);
    return info.userId;
  });
  assert.deepEqual(found.sort(), [...ids, "nobody"].sort());
  assert.deepEqual(fs.readdirSync(root).sort(), ["1.t.helper", "agents"]);
  assert.equal((await agent.listUsers()).length, ids.length + 1);
});

test("logs that lag, are damaged or belong to nobody are made anew when the user is next opened, and whole ones are not touched", async () => {
  const root = quickFolder("damaged");
  const before = await opened(root);
  for (const text of ["one", "two", "three"]) await before.call(text, alice);
  await before.close();
  const [log, list] = [logOf(root), path.join(sessionsOf(root), "sessions.json")];
  const [whole, sessions] = [fs.readFileSync(log), fs.readFileSync(list)];
  const untouched = fs.statSync(log);
  const damages = {
    "cut in a line": () => fs.truncateSync(log, whole.length - 10),
    "cut between lines": () => fs.truncateSync(log, whole.indexOf(10) + 1),
    empty: () => fs.truncateSync(log, 0),
    removed: () => fs.rmSync(log),
    "with a line too many": () => fs.appendFileSync(log, whole.subarray(0, whole.indexOf(10) + 1)),
    "with half a line too many": () => fs.appendFileSync(log, '{"id":'),
    "changed in the middle": () => fs.writeFileSync(log, whole.toString().replace("to two", "to Two")),
    "without its list": () => fs.rmSync(list),
    "with a damaged list": () => fs.writeFileSync(list, "[{"),
    "with a log of no session": () => fs.copyFileSync(log, logOf(root, "stray")),
    "with a temporary file of a crash": () => fs.writeFileSync(path.join(sessionsOf(root), ".new.1.x"), "x"),
    "without any file": () => fs.rmSync(path.join(root, "agents"), { recursive: true }),
  };
  const reopen = async () => {
    const agent = await opened(root);
    await agent.history(alice);
    await agent.close();
  };
  await reopen();
  assert.equal(fs.statSync(log).mtimeMs, untouched.mtimeMs);
  assert.equal(fs.statSync(log).ino, untouched.ino);
  for (const [what, damage] of Object.entries(damages)) {
    damage();
    await reopen();
    assert.deepEqual(fs.readFileSync(log), whole, what);
    assert.deepEqual(fs.readFileSync(list), sessions, what);
    assert.deepEqual(fs.readdirSync(sessionsOf(root)).sort(), ["s1.log.jsonl", "sessions.json"], what);
  }
});

test("sessions that were stored without the option get logs at the first opening with it", async () => {
  const root = quickFolder("later");
  const before = await opened(root, {}, false);
  for (let n = 0; n < 40; n++) await before.call(`n ${n}`, alice);
  await before.close();
  const agent = await opened(root);
  await agent.history(alice);
  assert.equal((await assertEqual(agent, root)).length, 80);
  assert.equal(listIn(root)[0].messages, 80);
});

test("a commit also writes the lines that another process has stored and not logged", async () => {
  const root = quickFolder("lagging");
  const agent = await opened(root);
  await agent.call("hello", alice);
  // A store without logs stands for a process that dies between the journal and the log.
  const other = await opened(root, {}, false);
  await other.call("unlogged", alice);
  await other.call("also unlogged", { userId: "alice", sessionId: "s2" });
  await other.call("deleted", { userId: "alice", sessionId: "s3" });
  await other.deleteSession({ userId: "alice", sessionId: "s3" });
  assert.equal(linesIn(logOf(root)).length, 2);
  await agent.call("I am here", { userId: "alice", sessionId: "s4" });
  assert.equal((await assertEqual(agent, root)).length, 4);
  await assertEqual(agent, root, { userId: "alice", sessionId: "s2" });
  assert.deepEqual(listIn(root).map(({ sessionId }) => sessionId), ["s4", "s2", "s1"]);
  await other.deleteSession(alice);
  await agent.call("again", { userId: "alice", sessionId: "s4" });
  assert.deepEqual(fs.readdirSync(sessionsOf(root)).sort(), ["s2.log.jsonl", "s4.log.jsonl", "sessions.json"]);
});

test("deleteSession and deleteUser remove the logs before they resolve, and nothing of other users", async () => {
  const root = quickFolder("deleted");
  const agent = await opened(root);
  const bob = { userId: "bob", sessionId: "s1" };
  for (const slot of [alice, { ...alice, sessionId: "s2" }, bob]) await agent.call("a secret", slot);
  await agent.deleteSession(alice);
  assert.deepEqual(fs.readdirSync(sessionsOf(root)).sort(), ["s2.log.jsonl", "sessions.json"]);
  assert.deepEqual(listIn(root).map(({ sessionId }) => sessionId), ["s2"]);
  await agent.deleteUser("alice");
  assert.deepEqual(fs.readdirSync(path.join(root, "agents", "helper")), ["bob"]);
  await assertEqual(agent, root, bob);
  await agent.call("I am back", alice);
  assert.equal((await assertEqual(agent, root)).length, 2);
  await agent.deleteSession(alice);
  await agent.deleteSession(bob);
  assert.ok(!fs.existsSync(path.join(root, "agents")), "folders without logs are removed");
});

test("a deletion fails as a whole if the log cannot be removed, and succeeds when it can", async () => {
  const root = quickFolder("stuck");
  const agent = await opened(root);
  await agent.call("hello", alice);
  fs.rmSync(logOf(root));
  fs.mkdirSync(logOf(root));
  const { code, hint } = await agent.deleteSession(alice).then(assert.fail, (error) => error);
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.ok(hint);
  assert.equal((await agent.history(alice)).length, 2);
  fs.rmdirSync(logOf(root));
  await agent.deleteSession(alice);
  assert.ok(!fs.existsSync(logOf(root)));
  assert.deepEqual(await agent.history(alice), []);
});

test("if a log cannot be written, the call succeeds, the process is warned once, and the lines follow", async () => {
  const root = quickFolder("unwritable");
  fs.writeFileSync(path.join(root, "agents"), "mine");
  const agent = await opened(root);
  const warnings = await warningsIn(async () => {
    await agent.call("one", alice);
    await agent.call("two", alice);
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0].message, /agents/);
  assert.doesNotMatch(warnings[0].message, /one|two/);
  assert.equal(fs.readFileSync(path.join(root, "agents"), "utf8"), "mine");
  assert.equal((await agent.history(alice)).length, 4);
  fs.rmSync(path.join(root, "agents"));
  await agent.call("three", alice);
  assert.equal((await assertEqual(agent, root)).length, 6);
});

test("a symbolic link in place of a folder or a log is not followed", async () => {
  const plants = {
    "the folder of logs": (root, away) => {
      fs.rmSync(path.join(root, "agents"), { recursive: true });
      fs.symlinkSync(away, path.join(root, "agents"));
    },
    "a log": (root, away) => {
      fs.rmSync(logOf(root));
      fs.symlinkSync(path.join(away, "secret"), logOf(root));
    },
  };
  for (const [what, plant] of Object.entries(plants)) {
    const [root, away] = [quickFolder("linked"), quickFolder("away")];
    fs.writeFileSync(path.join(away, "secret"), "secret");
    await (await opened(root)).call("first", alice);
    plant(root, away);
    const agent = await opened(root);
    const warnings = await warningsIn(() => agent.call("hello", alice));
    assert.equal(warnings.length, 1, what);
    assert.deepEqual(fs.readdirSync(away), ["secret"], what);
    assert.equal(fs.readFileSync(path.join(away, "secret"), "utf8"), "secret", what);
  }
});

test("records that a store above has cut into chunks give whole lines", async () => {
  const root = quickFolder("chunks");
  const files = fileStore(root, { readable: true });
  const store = { ...files, capabilities: { ...files.capabilities, maxValueBytes: 200 } };
  const agent = await createAgent({ name: "helper", model: echo(), store });
  for (const text of ["x".repeat(5_000), "short", "ü".repeat(3_000)]) await agent.call(text, alice);
  assert.equal((await assertEqual(agent, root)).length, 6);
  const lines = fs.readFileSync(logOf(root));
  assert.equal(listIn(root)[0].messages, 6);
  fs.rmSync(path.join(root, "agents"), { recursive: true });
  await files.close();
  const again = await opened(root, { store: { ...fileStore(root, { readable: true }), capabilities: store.capabilities } });
  await again.history(alice);
  assert.deepEqual(fs.readFileSync(logOf(root)), lines);
  await again.deleteSession(alice);
  assert.ok(!fs.existsSync(logOf(root)));
});

test("records that are not JSON give a warning without their content, and no line", async () => {
  const root = quickFolder("encrypted");
  const store = fileStore(root, { readable: true });
  const value = new TextEncoder().encode("an unreadable secret");
  const warnings = await warningsIn(async () => {
    for (const n of [1, 2])
      await store.commit({ revision: `r${n}`, put: [{ key: `1.t.helper/t.alice/slot/t.s1/log/00000000000${n}.x`, value }], remove: [] });
  });
  assert.equal(warnings.length, 1);
  assert.doesNotMatch(warnings[0].message, /secret/);
  assert.equal((await store.list("1.t.helper/t.alice/")).length, 2);
  assert.ok(!fs.existsSync(logOf(root)));
});

test("keys in the folder of logs are refused", async () => {
  const store = fileStore(quickFolder("reserved"));
  const batch = { revision: "r1", put: [{ key: "agents/u/x", value: new Uint8Array(1) }], remove: [] };
  await assert.rejects(async () => store.commit(batch), { code: "INPUT_INVALID" });
  assert.deepEqual(await store.list(""), []);
});

test("a trim of the journal leaves the logs as they are", async () => {
  const root = quickFolder("trimmed");
  const [agent, beside] = [await opened(root), await opened(root)];
  for (let n = 0; n < 150; n++) await (n % 3 ? agent : beside).call(`n ${n}`, { userId: "alice", sessionId: `s${n % 2}` });
  await Promise.all([agent.close(), beside.close()]);
  const [generation] = fs.readdirSync(path.join(root, "1.t.helper", "t.alice"));
  assert.ok(Number(generation) > 0, "the journal was not trimmed");
  const reader = await opened(root);
  for (const session of ["s0", "s1"]) {
    const [{ ino }, log] = [fs.statSync(logOf(root, session)), logOf(root, session)];
    assert.equal((await assertEqual(reader, root, { userId: "alice", sessionId: session })).length, 150);
    assert.equal(fs.statSync(log).ino, ino, "the log was rewritten");
  }
});

test("a list of more than a thousand sessions is written at most once per second, and at the latest when the store is closed", async () => {
  const root = quickFolder("long-list");
  const store = fileStore(root, { readable: true });
  const line = (n) => ({
    key: `1.t.helper/t.alice/index/${String(9_000_000 - n).padStart(13, "0")}.t.s${n}`,
    value: new TextEncoder().encode(JSON.stringify({ sessionId: `s${n}`, userId: "alice", title: `n ${n}`, messages: 1 })),
  });
  await store.commit({ revision: "r0", put: Array.from({ length: 1_200 }, (_, n) => line(n)), remove: [] });
  assert.equal(listIn(root).length, 1_200);
  await store.commit({ revision: "r1", put: [line(1_200)], remove: [] });
  assert.equal(listIn(root).length, 1_200);
  // The list is written although nothing else happens.
  while (listIn(root).length === 1_200) await new Promise((resolve) => setTimeout(resolve, 10));
  await store.commit({ revision: "r2", put: [line(1_201)], remove: [] });
  await store.close();
  assert.deepEqual(listIn(root).map(({ sessionId }) => sessionId), Array.from({ length: 1_202 }, (_, at) => `s${1_201 - at}`));
});

const talking = `
import { createAgent, customModel, textOf } from "lockgate";
import { fileStore } from "lockgate/stores/node";
const [, , root, who, calls] = process.argv;
const model = customModel({ id: "echo", async *generate({ messages }) { yield { type: "text", text: "to " + textOf(messages.at(-1)) }; } });
const agent = await createAgent({ name: "helper", model, store: fileStore(root, { readable: true }), queueLimit: 1000, timeouts: { lock: 240_000 } });
for (let n = 0; n < Number(calls); n++) {
  await agent.call(who + " " + n + " " + "x".repeat(n * 700), { userId: "alice", sessionId: "s1" });
  await agent.call(who + " " + n, { userId: "alice", sessionId: who });
  process.stdout.write(n + "\\n");
}
await agent.close();
`;

/** A process that talks in the session that all share, and in one of its own. `onSaid` is called after each round. */
async function talk(root, who, calls, onSaid = () => {}) {
  const file = path.join(await project(), "readable-talk.mjs");
  fs.writeFileSync(file, talking);
  const child = spawn(process.execPath, [file, root, who, String(calls)], { stdio: ["ignore", "pipe", "pipe"] });
  let complaints = "";
  child.stderr.on("data", (text) => (complaints += text));
  child.stdout.on("data", () => onSaid(child));
  return new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, complaints })));
}

test("two processes append to the same log in turn: every line is whole, none is missing or doubled", async () => {
  const root = quickFolder("together");
  const ended = await Promise.all(["one", "two"].map((who) => talk(root, who, 25)));
  for (const { code, complaints } of ended) assert.deepEqual([code, complaints], [0, ""]);
  // Before another opening could heal anything.
  const lines = linesIn(logOf(root));
  assert.equal(lines.length, 100);
  assert.deepEqual(listIn(root).map(({ sessionId }) => sessionId).sort(), ["one", "s1", "two"]);
  const agent = await opened(root);
  assert.deepEqual(await assertEqual(agent, root), lines);
  for (const sessionId of ["one", "two"]) await assertEqual(agent, root, { userId: "alice", sessionId });
});

test("processes that are killed at any moment leave logs that the next opening or commit makes whole", async () => {
  const root = quickFolder("killed");
  for (let n = 0; n < 12; n++) {
    // Killed at a different moment each time, while another process goes on.
    const killed = talk(root, `killed${n}`, 1_000, (child) => setTimeout(() => child.kill("SIGKILL"), n * 7));
    const other = talk(root, "other", 3);
    assert.equal((await killed).signal, "SIGKILL");
    const { code, complaints } = await other;
    assert.deepEqual([code, complaints], [0, ""]);
  }
  const agent = await opened(root);
  await agent.call("the last", alice);
  for (const { sessionId } of await agent.listSessions("alice")) {
    // The call that logs the inputs of killed calls.
    await agent.call("recover", { userId: "alice", sessionId });
    await assertEqual(agent, root, { userId: "alice", sessionId });
  }
  await agent.close();
  const logs = fs.readdirSync(sessionsOf(root)).filter((name) => name !== "sessions.json");
  assert.deepEqual(logs.sort(), listIn(root).map(({ log }) => log).sort());
  assert.deepEqual(fs.readdirSync(path.join(root, "1.t.helper", "t.alice")).filter((name) => name.startsWith("_logs")), []);
});

test("the next opening removes the files of a lock that a killed process has left", async () => {
  const root = quickFolder("leftovers");
  const first = await opened(root);
  await first.call("hello", alice);
  await first.close();
  const folder = path.join(root, "1.t.helper", "t.alice");
  // A process that has ended, and this one, which could still need its file.
  const { pid } = await new Promise((resolve) => {
    const child = spawn(process.execPath, ["-e", ""]);
    child.on("close", () => resolve(child));
  });
  const [left, mine] = [pid, process.pid].map((id) => path.join(folder, `_logs.${id}.0123456789abcdef`));
  for (const file of [left, mine]) fs.writeFileSync(file, "");
  const second = await opened(root);
  await second.history(alice);
  assert.deepEqual([left, mine].map((file) => fs.existsSync(file)), [false, true]);
  await second.close();
});
