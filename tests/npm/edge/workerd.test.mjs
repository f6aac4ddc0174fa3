// The packed package in workerd, the runtime of Cloudflare Workers: bundled like a user's worker, without Node compatibility.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startWorker } from "../support/worker.mjs";

// The agent is created at the top level, where a Worker may not use I/O, timers or random numbers.
const worker = `
import { createAgent, customModel, demoModel, textOf } from "lockgate";

const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
let inside = 0;
const careful = customModel({
  id: "careful",
  async *generate({ messages }) {
    if (++inside > 1) throw new Error("two calls of one session were with the model at once");
    for (const word of ["to ", textOf(messages.at(-1)), " after " + (messages.length - 1)]) {
      await turn();
      yield { type: "text", text: word };
    }
    inside -= 1;
  },
});
const demo = await createAgent({ name: "demo", model: demoModel() });
const agent = await createAgent({ name: "edge", model: careful, queueLimit: 100 });

const answers = {
  call: ({ input, sessionId }) => agent.call(input, { sessionId }),
  demo: ({ input, sessionId }) => demo.call(input, { sessionId }),
  history: ({ sessionId }) => agent.history({ sessionId }),
  list: () => agent.listSessions(null),
  delete: async ({ sessionId }) => (await agent.deleteSession({ sessionId }), null),
  refuse: () => agent.call("hello", { sessionId: "" }),
};

function streamed({ input, sessionId }) {
  const encoder = new TextEncoder();
  const lines = new TransformStream({
    transform: (event, controller) => controller.enqueue(encoder.encode(JSON.stringify(event) + "\\n")),
  });
  return new Response(agent.stream(input, { sessionId }).toReadableStream().pipeThrough(lines));
}

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const asked = await request.json();
    if (pathname === "/stream") return streamed(asked);
    try {
      return Response.json(await answers[pathname.slice(1)](asked));
    } catch (error) {
      const { code, hint, message } = error;
      return Response.json({ code, hint, message }, { status: error.status ?? 500 });
    }
  },
};
`;

let miniflare;

before(async () => {
  const started = await startWorker(worker);
  miniflare = started.miniflare;
  assert.ok(
    started.inputs.some((file) => file.endsWith("dist/entry/workerd.js")),
    "another entry was taken",
  );
});

after(() => miniflare?.dispose());

const ask = (what, body = {}) =>
  miniflare.dispatchFetch(`http://worker/${what}`, { method: "POST", body: JSON.stringify(body) });

async function answered(what, body) {
  const response = await ask(what, body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

test("an agent made at the top level of a Worker answers", async () => {
  const { text, reason } = await answered("demo", { input: "Hello there", sessionId: "s" });
  assert.equal(reason, "stop");
  assert.match(text, /demo model/);
});

test("a Worker without a store keeps sessions in memory from request to request", async () => {
  await answered("call", { input: "q1", sessionId: "memory" });
  const { text } = await answered("call", { input: "q2", sessionId: "memory" });
  assert.equal(text, "to q2 after 2");
  const history = await answered("history", { sessionId: "memory" });
  assert.deepEqual(
    history.map(({ content }) => content[0].text),
    ["q1", "to q1 after 0", "q2", "to q2 after 2"],
  );
  await answered("delete", { sessionId: "memory" });
  assert.deepEqual(await answered("history", { sessionId: "memory" }), []);
});

test("a Worker streams the events of a call as they come", async () => {
  const response = await ask("stream", { input: "hello", sessionId: "streamed" });
  const text = await response.text();
  const events = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index),
  );
  assert.deepEqual([events[0].type, events.at(-1).type], ["call-start", "call-end"]);
  const deltas = events.filter(({ type }) => type === "text-delta").map(({ delta }) => delta);
  // The first delta is delivered at once; deltas within the next milliseconds may be joined.
  assert.deepEqual([deltas[0], deltas.join("")], ["to ", "to hello after 0"]);
});

test("twenty requests at once on one session are answered one after the other", async () => {
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  const replies = await Promise.all(
    numbers.map((n) => answered("call", { input: `q${n}`, sessionId: "busy" })),
  );
  const seen = replies.map(({ text }) => Number(text.split(" after ")[1]));
  assert.deepEqual(
    seen.sort((one, other) => one - other),
    numbers.map((n) => 2 * n),
  );
  const history = (await answered("history", { sessionId: "busy" })).map(
    ({ content }) => content[0].text,
  );
  assert.equal(history.length, 40);
  for (let index = 0; index < 40; index += 2)
    assert.equal(history[index + 1], `to ${history[index]} after ${index}`);
  const asked = history.filter((_, index) => index % 2 === 0);
  assert.deepEqual(new Set(asked), new Set(numbers.map((n) => `q${n}`)));
});

test("mistakes of a caller are reported in a Worker too", async () => {
  const response = await ask("refuse");
  assert.equal(response.status, 400);
  const { code, hint } = await response.json();
  assert.equal(code, "ID_INVALID");
  assert.ok(hint);
});
