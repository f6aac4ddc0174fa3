// Requests that overlap at the edge, in workerd: in a Durable Object while its model is fetched, and in a plain Worker.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { memoryStore } from "../../../dist/stores/memory.js";
import { startWorker } from "../support/worker.mjs";

const source = `
import { createAgent, customModel, textOf } from "lockgate";
import { durableObjectStore } from "lockgate/stores/cloudflare";

/** A slow model behind HTTP. */
const model = (place) => customModel({
  id: "far away",
  async *generate({ messages }) {
    const response = await fetch(place + "/model", { method: "POST", body: textOf(messages.at(-1)) });
    yield { type: "text", text: await response.text() };
  },
});

/** A store behind HTTP, which several clients share. */
const farStore = (place) => {
  const ask = async (what, given) => (await fetch(place + "/store/" + what, { method: "POST", body: JSON.stringify(given, bytes) })).json();
  const bytes = (_, value) => (value instanceof Uint8Array ? Array.from(value) : value);
  const record = (it) => it && { ...it, value: new Uint8Array(it.value) };
  return {
    name: "far",
    capabilities: { atomic: true, compareAndSet: true, shared: "cluster", durability: "disk", evictable: false, maxValueBytes: null },
    get: async (keys) => (await ask("get", [keys])).map(record),
    list: async (prefix, page) => (await ask("list", [prefix, page])).map(record),
    commit: (batch) => ask("commit", [batch]),
  };
};

const answer = async (agent, request) => {
  const { input, sessionId } = await request.json();
  const { text } = await (await agent).call(input, { userId: "alice", sessionId });
  return Response.json({ text, messages: (await (await agent).history({ userId: "alice", sessionId })).length });
};

export class Talk {
  constructor(state, env) {
    this.agent = createAgent({ name: "object", model: model(env.PLACE), store: durableObjectStore(state.storage) });
  }
  fetch(request) {
    return answer(this.agent, request);
  }
}

let plain;
export default {
  fetch(request, env) {
    if (new URL(request.url).pathname === "/object") return env.TALK.get(env.TALK.idFromName("alice")).fetch(request);
    plain ??= createAgent({ name: "plain", model: model(env.PLACE), store: farStore(env.PLACE), queueLimit: 100 });
    return answer(plain, request);
  },
};
`;

let miniflare;
let server;
const asked = [];
let n_inside = 0;
let most_inside = 0;

before(async () => {
  const store = memoryStore();
  server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (request.url === "/model") {
      most_inside = Math.max(most_inside, ++n_inside);
      asked.push(text);
      // Answered after a few turns of the event loop, so that a later request could overtake an earlier one.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      n_inside -= 1;
      return response.end(`answer to ${text}`);
    }
    const [what, given] = [request.url.split("/").at(-1), JSON.parse(text)];
    const bytes = (batch) => ({ ...batch, put: batch.put.map((it) => ({ ...it, value: new Uint8Array(it.value) })) });
    const found = await (what === "commit" ? store.commit(bytes(given[0])) : store[what](...given));
    response.end(JSON.stringify(found, (_, value) => (value instanceof Uint8Array ? Array.from(value) : value)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const PLACE = `http://127.0.0.1:${server.address().port}`;
  ({ miniflare } = await startWorker(source, { bindings: { PLACE }, durableObjects: { TALK: "Talk" } }));
});

after(async () => {
  await miniflare?.dispose();
  server?.close();
  server?.closeAllConnections();
});

const say = async (path, input, sessionId) => {
  const response = await miniflare.dispatchFetch(`http://worker${path}`, { method: "POST", body: JSON.stringify({ input, sessionId }) });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
};

test("G-16: requests of a Durable Object wait for each other, even while its model is being fetched", async () => {
  asked.length = most_inside = 0;
  const texts = Array.from({ length: 10 }, (_, n) => `question ${n}`);
  const answers = await Promise.all(texts.map((text) => say("/object", text, "s")));
  assert.equal(most_inside, 1, "two calls of one session asked the model at once");
  assert.deepEqual(asked.toSorted(), texts.toSorted());
  assert.deepEqual(answers.map(({ text }) => text), texts.map((text) => `answer to ${text}`));
  assert.equal(Math.max(...answers.map(({ messages }) => messages)), 20);
});

test("G-17: fifty requests at once to a plain Worker, whose model and store are I/O, are all answered", async () => {
  asked.length = most_inside = 0;
  const sessions = ["a", "b", "c", "d", "e"];
  const texts = Array.from({ length: 50 }, (_, n) => `question ${n}`);
  const answers = await Promise.all(texts.map((text, n) => say("/plain", text, sessions[n % 5])));
  assert.deepEqual(answers.map(({ text }) => text), texts.map((text) => `answer to ${text}`));
  assert.ok(most_inside > 1 && most_inside <= 5, `${most_inside} calls asked the model at once, with five sessions`);
  for (const sessionId of sessions) assert.equal((await say("/plain", "and?", sessionId)).messages, 22);
});
