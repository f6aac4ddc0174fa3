// Processes that share a session over a real store: the messages of each, the acknowledged turns, and the stored turns.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { lend, packedModule, project } from "./project.mjs";

const PATIENCE_MS = 300_000;

/** The slot that all processes use. */
export const slot = { userId: "alice", sessionId: "shared" };

// Opens the store of a description, in this process or in another.
const opening = `
export async function openStore({ kind, place }) {
  if (kind === "files") {
    const { fileStore } = await import("lockgate/stores/node");
    return { store: fileStore(place), close: async () => {} };
  }
  if (kind === "redis") {
    const { createClient } = await import("redis");
    const { redisStore } = await import("lockgate/stores/redis");
    const client = createClient({ url: place });
    client.on("error", () => {});
    await client.connect();
    return { store: redisStore(client), close: async () => client.destroy() };
  }
  const { default: mysql } = await import("mysql2/promise");
  const { sqlStore } = await import("lockgate/stores/sql");
  const pool = mysql.createPool({ ...place, connectionLimit: 4 });
  return { store: sqlStore(pool, { dialect: "mysql" }), close: () => pool.end() };
}
`;

// Says \`who 0\`, \`who 1\`, …, all at once or one after the other, and prints what was acknowledged.
const talking = `
import { createAgent, customModel, textOf } from "lockgate";
import { openStore } from "./open-store.mjs";
const { description, slot, who, first, calls, atOnce } = JSON.parse(process.env.TALK);
const { store, close } = await openStore(description);
const model = customModel({
  id: "echo",
  async *generate({ messages }) {
    yield { type: "text", text: "to " + textOf(messages.at(-1)) };
    yield { type: "text", text: " after " + (messages.length - 1) };
  },
});
const agent = await createAgent({ name: "helper", model, store, queueLimit: 1000, timeouts: { lock: 240_000 } });
const say = async (n) => {
  await agent.call(who + " " + n, slot);
  process.stdout.write("ack " + n + "\\n");
};
const numbers = Array.from({ length: calls }, (_, n) => first + n);
if (atOnce) await Promise.all(numbers.map(say));
else for (const n of numbers) await say(n);
await agent.close();
await close();
`;

/** A store of this description, open in this process. */
export async function openHere(description) {
  await place();
  const { openStore } = await import(path.join(await project(), "open-store.mjs"));
  return openStore(description);
}

async function place() {
  await lend("redis", "mysql2");
  const folder = await project();
  fs.writeFileSync(path.join(folder, "open-store.mjs"), opening);
  fs.writeFileSync(path.join(folder, "talk.mjs"), talking);
  return path.join(folder, "talk.mjs");
}

/**
 * A process that makes calls. \`acknowledged\` has the numbers of the calls that have resolved; \`ended\` resolves with its exit code
 * or the signal that ended it; \`onAck\` is called with each number.
 */
export async function talk(description, { who, first = 0, calls, atOnce = false, onAck = () => {} }) {
  const file = await place();
  const env = { ...process.env, NODE_OPTIONS: "", TALK: JSON.stringify({ description, slot, who, first, calls, atOnce }) };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] });
  const limit = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  const acknowledged = [];
  let [rest, complaints] = ["", ""];
  child.stderr.on("data", (text) => (complaints += text));
  child.stdout.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const n = Number(line.slice(4));
      acknowledged.push(n);
      onAck(n, child);
    }
  });
  const ended = new Promise((resolve) =>
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      resolve({ code, signal, complaints });
    }),
  );
  return { acknowledged, ended, kill: () => child.kill("SIGKILL") };
}

/** The questions and answers of the slot, read by an agent of this process. */
export async function toldIn(description) {
  const { createAgent, demoModel, textOf } = await packedModule("lockgate");
  const { store, close } = await openHere(description);
  const agent = await createAgent({ name: "helper", model: demoModel(), store });
  const messages = [];
  for (let before; ; ) {
    const page = await agent.history(slot, { limit: 500, ...(before && { before }) });
    messages.unshift(...page);
    if (page.length < 500) break;
    before = page[0].id;
  }
  assert.equal((await agent.listSessions(slot.userId)).length, 1);
  await agent.close();
  await close();
  return messages.map((message) => ({ role: message.role, text: textOf(message) }));
}

/** Checks that every question is followed by its own answer, and that the answer has seen all earlier turns. */
export function assertNotInterleaved(told) {
  told.forEach(({ role, text }, at) => {
    if (at % 2 === 0) assert.equal(role, "user", `message ${at} is ${text}`);
    else assert.equal(text, `to ${told[at - 1].text} after ${at - 1}`);
  });
}

/** Checks that each of these questions is stored once, with its answer, in order. */
export function assertTold(told, who, numbers) {
  const places = new Map();
  told.forEach(({ role, text }, at) => {
    if (role !== "user" || !text.startsWith(`${who} `)) return;
    assert.ok(!places.has(text), `${text} is stored twice`);
    places.set(text, at);
  });
  let last = -1;
  for (const n of numbers) {
    const at = places.get(`${who} ${n}`);
    assert.ok(at !== undefined, `${who} ${n} was acknowledged and is lost`);
    assert.ok(at > last, `${who} ${n} is out of order`);
    assert.equal(told[at + 1]?.text.split(" after ")[0], `to ${who} ${n}`);
    last = at;
  }
}
