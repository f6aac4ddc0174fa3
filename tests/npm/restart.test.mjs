// What becomes of a turn when its object is killed, evicted or cannot write, in workerd.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { allOf, asker, eventsOf, startHosted, startPlace, workerSource } from "./hosted.mjs";
import { folder } from "./servers.mjs";

/** An object that a test can evict, wake, and keep from writing. */
const body = `
  constructor(state, env) {
    const storage = {
      get: (key) => state.storage.get(key),
      put: (key, value) => state.storage.put(key, value),
      delete: (key) => state.storage.delete(key),
      list: (options) => state.storage.list(options),
      setAlarm: (at) => state.storage.setAlarm(at),
      deleteAlarm: () => state.storage.deleteAlarm(),
      deleteAll: () => state.storage.deleteAll(),
      transaction: (work) => state.storage.transaction((txn) => work({
        get: (keys) => txn.get(keys),
        list: (options) => txn.list(options),
        delete: (keys) => txn.delete(keys),
        put: async (entries) => {
          if (switches.failing) throw new Error("the disk is gone");
          await txn.put(entries);
        },
      })),
    };
    super({ storage }, env);
    this.state = state;
  }
  async fetch(request) {
    const what = new URL(request.url).pathname;
    if (what === "/evict") return this.state.abort("evicted");
    if (what === "/keys") return Response.json([...(await this.state.storage.list()).keys()]);
    if (what === "/wake") return (await this.alarm(), new Response("woken"));
    if (what === "/fail") return (switches.failing = request.method === "POST", new Response("so be it"));
    return super.fetch(request);
  }
`;
const source = `const switches = { failing: false };\n${workerSource(body)}`;

let place;
let hosted;
const settings = { durableObjectsPersist: folder("restart"), handleRuntimeStdio: (...logs) => logs.forEach((log) => log.resume()) };
const alice = asker(() => hosted, "alice");
const said = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const textsOf = (history) => history.map(({ role, name, content }) => `${name ?? role}: ${content.map((block) => block.text ?? block.output?.[0]?.text ?? block.name).join("")}`);
const start = async () => void (hosted = await startHosted(place, { source, settings }));

/** Begins a call whose answer is half there. */
async function half(sessionId, callId) {
  const response = await alice(`sessions/${sessionId}/messages`, { input: `hold ${sessionId}`, callId });
  const seen = [];
  for await (const event of eventsOf(response)) {
    seen.push(event);
    if (event.type === "text-delta") break;
  }
  return seen;
}

const CUT = /^system: The answer to this was cut off/;

describe("an object", () => {
  before(async () => {
    place = await startPlace();
    await start();
  });

  after(async () => {
    await hosted?.stop();
    place?.close();
  });

  test("W-01: a turn that a kill of workerd has cut off is closed as interrupted, and whoever follows it is told where to read it", async () => {
    const seen = await half("killed", "mine");
    await hosted.kill();
    await start();
    const error = await said(await alice(`sessions/killed/stream?callId=mine&after=${seen.at(-1).seq}`), 409);
    assert.deepEqual([error.code, error.read, error.callId], ["SUPERSEDED", "/agent/sessions/killed/history", "mine"]);
    const texts = textsOf(await said(await fetch(new URL(error.read, hosted.url), { headers: { "x-user": "alice" } })));
    assert.equal(texts[0], "user: hold killed");
    assert.match(texts[1], CUT);
    const again = await said(await alice("sessions/killed/messages", { input: "hold killed", callId: "mine" }, { headers: { accept: "application/json" } }));
    assert.equal(again.reason, "interrupted");
    assert.equal(place.asked.filter((text) => text === "hold killed").length, 1, "the model was asked again");
    const next = await allOf(await alice("sessions/killed/messages", { input: "go on" }));
    assert.equal(next.at(-1).reply.text, "you said go on");
    assert.equal((await alice("sessions/killed/stream")).status, 204, "whoever goes on has seen it");
    place.letGo("hold killed");
  });

  test("W-01: a tool that ran before its object was evicted is not run again, and the turn is closed at the next request", async () => {
    place.onTool = () => false;
    const ran = new Promise((resolve) => (place.onTool = () => (resolve(), false)));
    const call = alice("sessions/evicted/messages", { input: "use count once" }).then((response) => response.text());
    await ran;
    place.onTool = undefined;
    await alice("evict", {}).then((response) => response.text(), () => {});
    await call.catch(() => {});
    const texts = textsOf(await said(await alice("sessions/evicted/history")));
    assert.equal(texts[0], "user: use count once");
    assert.match(texts.at(-1), CUT);
    assert.equal(place.ran.filter(({ word }) => word === "once").length, 1);
  });

  test("W-01: the alarm closes what a restart has cut off, though nobody asks", async () => {
    await half("asleep", "a");
    await hosted.kill();
    await start();
    assert.equal(await (await alice("wake")).text(), "woken");
    const { messages, running } = await said(await alice("sessions/asleep"));
    assert.deepEqual([messages, running], [2, false]);
    place.letGo("hold asleep");
  });

  test("W-01: a request that was not accepted before the object was evicted is not counted as a turn, and runs when it is asked again", async () => {
    await half("waiting", "first");
    const asked = alice("sessions/waiting/messages", { input: "second", callId: "second" });
    for await (const event of eventsOf(await asked)) if (event.type === "queued") break;
    await alice("evict", {}).then((response) => response.text(), () => {});
    assert.equal((await alice("sessions/waiting/stream?callId=second")).status, 204);
    assert.equal((await alice("sessions/waiting/stream?callId=first")).status, 409);
    const reply = await said(await alice("sessions/waiting/messages", { input: "second", callId: "second" }, { headers: { accept: "application/json" } }));
    assert.equal(reply.text, "you said second");
    place.letGo("hold waiting");
  });

  test("whoever only looks leaves nothing in the storage", async () => {
    const looker = asker(() => hosted, "looker");
    for (const path of ["sessions", "sessions/s/history", "sessions/s", "chat/s", "files"]) await said(await looker(path));
    assert.deepEqual(await said(await looker("keys")), []);
  });

  test("W-02: work after the reply is done though its client is gone", async () => {
    const response = await alice("sessions/left/messages", { input: "about windmills" });
    for await (const event of eventsOf(response)) if (event.type === "accepted") break;
    assert.equal(await (await alice("wake")).text(), "woken");
    assert.equal((await said(await alice("search?query=windmills"))).length, 2);
  });

  test("W-11: a storage that fails to write is STORE_UNAVAILABLE, and the state is that of the last commit", async () => {
    await allOf(await alice("sessions/disk/messages", { input: "before" }));
    await alice("fail", {});
    const error = await said(await alice("sessions/disk/messages", { input: "lost" }), 503);
    assert.deepEqual([error.code, error.retryable], ["STORE_UNAVAILABLE", true]);
    await alice("fail");
    assert.deepEqual(textsOf(await said(await alice("sessions/disk/history"))), ["user: before", "assistant: you said before"]);
    const events = await allOf(await alice("sessions/disk/messages", { input: "after" }));
    assert.equal(events.at(-1).type, "call-end");
    assert.equal((await said(await alice("sessions/disk/history"))).length, 4);
  });

  test("P-05: whoever is deleted leaves no record of any kind in the object's storage", async () => {
    const canary = asker(() => hosted, "canary");
    await allOf(await canary("sessions/c/messages", { input: "use count canary" }));
    await said(await canary("file", { path: "a.md", text: "mine" }, { method: "PUT" }));
    assert.ok((await said(await canary("keys"))).length >= 4);
    await said(await canary("user", undefined, { method: "DELETE" }));
    assert.deepEqual(await said(await canary("keys")), []);
    assert.deepEqual(await said(await canary("sessions")), []);
    assert.equal((await allOf(await canary("sessions/c/messages", { input: "hello again" }))).at(-1).type, "call-end");
  });
});
