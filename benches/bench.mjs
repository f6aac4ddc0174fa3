// Measures what a call costs, as ratios within one run: `npm run bench`. Times depend on the machine, ratios hardly.

import { createAgent, customModel, memoryStore } from "../dist/entry/node.js";

/** Answers at once; reads only the last message, as a model that is charged by the token would like to. */
const quick = customModel({
  id: "quick",
  async *generate({ messages }) {
    yield { type: "text", text: `answer ${messages.at(-1).id.length}` };
  },
});

/** A store that counts the bytes it is given. */
function counting() {
  const store = memoryStore();
  const count = { bytes: 0 };
  const commit = (batch) => {
    for (const { value } of batch.put) count.bytes += value.length;
    return store.commit(batch);
  };
  return { count, store: { name: "counting", capabilities: store.capabilities, get: store.get, list: store.list, commit } };
}

async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const median = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];

/** The cost of a call at a length of history: microseconds and bytes. */
async function perCall(nMessages) {
  const { count, store } = counting();
  const agent = await createAgent({ name: "bench", model: quick, store });
  const slot = { sessionId: "s1" };
  for (let n = 0; n < nMessages / 2; n++) await agent.call("a question of a usual length", slot);
  const times = [];
  count.bytes = 0;
  for (let n = 0; n < 40; n++) times.push(await timed(() => agent.call("a question of a usual length", slot)));
  return { microseconds: median(times) * 1_000, bytes: count.bytes / 40 };
}

/** What people write by hand: an array, stringified after every call. */
async function perCallByHand(nMessages) {
  const saved = new Map();
  const messages = Array.from({ length: nMessages }, (_, n) => ({ role: "user", content: `message ${n} of a usual length` }));
  saved.set("s1", JSON.stringify(messages));
  const call = async () => {
    const history = JSON.parse(saved.get("s1"));
    history.push({ role: "user", content: "a question of a usual length" }, { role: "assistant", content: "answer" });
    saved.set("s1", JSON.stringify(history));
  };
  const times = [];
  for (let n = 0; n < 40; n++) times.push(await timed(call));
  return median(times) * 1_000;
}

/** Memory after so many distinct sessions went through one agent over a store that forgets them. */
async function megabytesAfter(nSessions) {
  const forgetful = { ...memoryStore(), get: async (keys) => keys.map(() => null), list: async () => [], commit: async () => "ok" };
  const agent = await createAgent({ name: "bench", model: quick, store: forgetful });
  for (let n = 0; n < nSessions; n += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => agent.call("hello", { sessionId: `s${n + i}` })));
  }
  globalThis.gc?.();
  return process.memoryUsage().rss / 1e6;
}

async function sessionsAtOnce(n) {
  const agent = await createAgent({ name: "bench", model: quick, store: memoryStore() });
  const ms = await timed(() => Promise.all(Array.from({ length: n }, (_, i) => agent.call("hello", { sessionId: `s${i}` }))));
  return (n / ms) * 1_000;
}

async function callsOnOneSession(n) {
  const agent = await createAgent({ name: "bench", model: quick, store: memoryStore(), queueLimit: n });
  const slot = { sessionId: "s1" };
  const ms = await timed(() => Promise.all(Array.from({ length: n }, (_, i) => agent.call(`${i}`, slot))));
  const kept = await agent.history(slot, { limit: 3 * n });
  const inOrder = kept.every((message, i) => i % 2 === 1 || message.content[0].text === `${i / 2}`);
  return { perSecond: (n / ms) * 1_000, kept: kept.length, inOrder };
}

async function streaming(nDeltas) {
  const model = customModel({
    id: "stream",
    async *generate() {
      for (let n = 0; n < nDeltas; n++) yield { type: "text", text: "word " };
    },
  });
  const agent = await createAgent({ name: "bench", model, store: memoryStore() });
  let events = 0;
  const ms = await timed(async () => {
    for await (const _ of agent.stream("go", { sessionId: "s1" })) events += 1;
  });
  return { microseconds: (ms / nDeltas) * 1_000, events };
}

const row = (what, ...values) => console.log(what.padEnd(46), ...values.map((value) => String(value).padStart(14)));
const round = (value) => (value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString("en"));

await sessionsAtOnce(200);
const [short, long] = [await perCall(100), await perCall(10_000)];
const hand = await perCallByHand(10_000);
row("a call, by messages of history", "100", "10,000", "ratio");
row("  time, µs", round(short.microseconds), round(long.microseconds), `${(long.microseconds / short.microseconds).toFixed(2)} ×`);
row("  bytes written", round(short.bytes), round(long.bytes), `${(long.bytes / short.bytes).toFixed(2)} ×`);
row("  beside an array stringified by hand", "", round(hand), `${(long.microseconds / hand).toFixed(2)} ×`);
row("1,000 sessions at once, calls/s", round(await sessionsAtOnce(1_000)));
const one = await callsOnOneSession(1_000);
row("1,000 calls on one session, calls/s", round(one.perSecond), `${one.kept} kept`, one.inOrder ? "in order" : "OUT OF ORDER");
const [few, many] = [await megabytesAfter(2_000), await megabytesAfter(20_000)];
row("memory after 2,000 and 20,000 sessions, MB", round(few), round(many), `${(many / few).toFixed(2)} ×`);
const stream = await streaming(10_000);
row("a streamed delta of 10,000, µs", round(stream.microseconds), `${stream.events} events`);
