// Limits of the platform of edge workers, and the errors for a busy or broken Durable Object.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";
import { allOf, asker, startHosted, startPlace, workerSource } from "../support/hosted.mjs";
import { packedModule } from "../support/project.mjs";
import { startWorker } from "../support/worker.mjs";

const json = { headers: { accept: "application/json" } };

/** A worker for one test. */
async function worker(t, source, settings = {}) {
  const place = await startPlace();
  const hosted = await startHosted(place, { source, settings });
  t.after(async () => {
    await hosted.stop();
    place.close();
  });
  return { place, ask: asker(() => hosted, "alice") };
}

test("W-03: a turn that needs more requests than the host allows ends before the limit, is saved, and can be continued", async (t) => {
  const source = workerSource("maxSubrequests = 5;").replace(
    'if (last.role === "tool") return yield',
    'if (last.role === "tool" && place !== "") return yield { type: "tool-call", index: 0, name: "count", arguments: "{}" };\n    if (place === "") return yield',
  );
  const { place, ask } = await worker(t, source);
  const { reason, text } = await (await ask("sessions/s/messages", { input: "use count x" }, json)).json();
  assert.equal(reason, "middleware");
  assert.match(text, /used up the requests/);
  assert.equal(place.ran.length, 2, "the five requests are three to the model and two of the tool");
  const history = await (await ask("sessions/s/history")).json();
  assert.equal(history.at(-1).content[0].text, text);
  assert.equal((await (await ask("sessions/s/messages", { input: "go on" }, json)).json()).reason, "stop");
});

test("W-04: provider responses that are not read keep no connection open", { timeout: 60_000 }, async (t) => {
  const source = workerSource(`more() { return { model: openai({ model: "m", baseUrl: this.env.PLACE + "/v1" }), retries: { attempts: 3, initialMs: 1, maxMs: 1 } }; }`).replace(
    "import { customModel,",
    "import { customModel, openai,",
  );
  const { place, ask } = await worker(t, source);
  let n = 0;
  place.answer = (_, response) => {
    n += 1;
    if (n > 45) return response.writeHead(200, { "content-type": "text/event-stream" }).end('data: {"choices":[{"index":0,"delta":{"content":"well"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
    // A body without an end: the connection is free only after the reader cancels.
    response.writeHead(503, { "content-type": "text/html" }).write("x".repeat(100_000));
  };
  const codes = await Promise.all(
    Array.from({ length: 15 }, async (_, index) => (await (await ask(`sessions/s${index}/messages`, { input: "hello" }, json)).json()).code),
  );
  assert.deepEqual(new Set(codes), new Set(["MODEL_OVERLOADED"]));
  assert.equal(n, 45, "each call sends three requests");
  assert.equal((await (await ask("sessions/s/messages", { input: "hello" }, json)).json()).text, "well");
  // The last connections may still be closing. Only a connection that is never released makes this loop fail.
  while (place.sockets.size > 6) await Promise.race([...place.sockets].map((socket) => once(socket, "close")));
});

test("W-05: a request takes less CPU than the free plan allows, and the deployment is under a megabyte", async (t) => {
  const { measure } = await import("../../../benches/measures/worker.mjs");
  const found = await measure("lockgate", { nRequests: 300 });
  t.diagnostic(JSON.stringify(found));
  assert.ok(!(found["worker.cpu"] > 10), `a request takes ${found["worker.cpu"]} ms of CPU`);
  assert.ok(found["worker.bytes"] < 1_000_000);
});

test("W-07: nothing in an edge bundle compiles code, and after a trap the kept module makes a new instance", async (t) => {
  const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));
  const source = workerSource(`
    async fetch(request) {
      if (!request.url.endsWith("/trap")) return super.fetch(request);
      const engine = await loadEngine(() => { throw new Error("not loaded"); });
      const instance = engine.instance();
      try { instance.enter(() => instance.core.trap()); } catch (error) { return Response.json(error.code); }
      return Response.json("it did not trap");
    }
  `)
    .replace('from "lockgate/cloudflare"', `from ${JSON.stringify(path.join(dist, "entry/cloudflare-workerd.js"))}`)
    .replace('from "lockgate"', `from ${JSON.stringify(path.join(dist, "entry/workerd.js"))}`);
  const { place, ask } = await worker(t, `import { loadEngine } from ${JSON.stringify(path.join(dist, "runtime/wasm.js"))};\n${source}`);
  const running = ask("sessions/s/messages", { input: "hold s" }).then(allOf);
  await place.reached("hold s");
  assert.equal(await (await ask("trap")).json(), "ENGINE_CRASHED");
  assert.equal((await running).at(-1).error.code, "ENGINE_CRASHED");
  assert.equal((await (await ask("sessions/s/messages", { input: "hello" }, json)).json()).text, "you said hello");
  assert.match(await (await ask("sessions/s/history")).text(), /hold s.*cut off/);
  place.letGo("hold s");

  const { miniflare, outdir } = await startWorker(workerSource(), { durableObjects: { HELPER: "Helper" } });
  t.after(() => miniflare.dispose());
  const [bundle] = fs.readdirSync(outdir).filter((name) => name.endsWith(".js"));
  const text = fs.readFileSync(path.join(outdir, bundle), "utf8");
  for (const word of [/\bnew Function\b/, /\beval\(/]) assert.ok(!word.test(text), `the bundle has ${word}`);
});

test("W-12: an overloaded or moving object is BUSY and a reset object is STORE_UNAVAILABLE, and both errors are retryable", async () => {
  const { handle } = await packedModule("lockgate/cloudflare");
  const answers = async (failure) => {
    const objects = { idFromName: (name) => name, get: () => ({ fetch: async () => Promise.reject(Object.assign(new Error("a secret"), failure)) }) };
    const response = await handle(new Request("https://worker/sessions"), { objects, authenticate: () => ({ userId: "alice" }) });
    const text = await response.text();
    assert.doesNotMatch(text, /secret/);
    const { code, retryable, status } = JSON.parse(text);
    assert.equal(response.status, status);
    return [code, retryable];
  };
  assert.deepEqual(await answers({ overloaded: true }), ["BUSY", true]);
  assert.deepEqual(await answers({ retryable: true }), ["BUSY", true]);
  assert.deepEqual(await answers({ durableObjectReset: true, retryable: true }), ["STORE_UNAVAILABLE", true]);
  assert.deepEqual(await answers({}), ["INTERNAL", false]);
});

test("a request that authenticate rejects reaches nothing, and its error is not sent to the client", async (t) => {
  t.mock.method(console, "error", () => {});
  const { handle } = await packedModule("lockgate/cloudflare");
  let reached = 0;
  const objects = { idFromName: () => (reached += 1), get: () => ({ fetch: async () => new Response("reached") }) };
  for (const answer of [undefined, {}, { userId: "" }, { userId: undefined }, { userId: 7 }, { userId: "\ud800" }]) {
    const response = await handle(new Request("https://worker/sessions"), { objects, authenticate: () => answer });
    assert.equal((await response.json()).code, "ID_INVALID");
  }
  const thrown = await handle(new Request("https://worker/sessions"), { objects, authenticate: () => { throw new Error("the key is 12345"); } });
  assert.equal(thrown.status, 500);
  assert.doesNotMatch(await thrown.text(), /12345/);
  assert.equal(reached, 0);
});

test("P-07: messages of users never appear in a worker's log, even after failures", async (t) => {
  let log = "";
  const handleRuntimeStdio = (...logs) => logs.forEach((each) => each.on("data", (some) => (log += some)));
  const source = workerSource(`more() { return { middleware: [{ name: "m", onCall: ([{ content }]) => { if (content[0].text.includes("throws")) throw new TypeError(content[0].text); } }] }; }`)
    .replace("authenticate: (request) => {", 'authenticate: (request) => { if (request.url.includes("canary-bad")) throw new TypeError("canary-in-auth");');
  const { place, ask } = await worker(t, source, { handleRuntimeStdio });
  place.answer = (text, response) => (text.includes("fails") ? response.destroy() : response.end("canary-answer"));
  for (const input of ["canary-asked", "canary-throws", "canary-fails", "use none canary-tool"]) await allOf(await ask("sessions/canary-session/messages", { input }));
  await (await ask("sessions/canary-session/messages", "{ canary-broken")).text();
  assert.equal((await ask("canary-bad")).status, 500);
  await (await ask("sessions/none/history")).text();
  assert.match(log, /lockgate: TypeError/, "the log has the error of the worker");
  assert.doesNotMatch(log, /canary-(?!bad)/);
});
