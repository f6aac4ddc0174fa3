// Turns whose Durable Object is killed, evicted or cannot write, in workerd.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { allOf, asker, eventsOf, startHosted, startPlace, workerSource } from "../support/hosted.mjs";
import { packedModule } from "../support/project.mjs";
import { folder } from "../support/servers.mjs";

/** A Durable Object that a test can evict, wake, and make unable to write. */
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
  more() {
    return { toolResultEviction: { maxChars: 60, previewChars: 5 } };
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

/** Starts a call whose answer has arrived by half. */
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

  test("W-01: a turn that a kill of workerd has cut off is closed as interrupted, and a client that follows it gets the URL of the stored turn", async () => {
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
    assert.equal((await alice("sessions/killed/stream")).status, 204, "the client that continued has already seen it");
    place.letGo("hold killed");
  });

  test("W-01: followers hear the end of a call that a kill of workerd has cut off, and that its session is interrupted", async () => {
    const { remoteAgent } = await packedModule("lockgate/remote");
    const far = "http://object/agent";
    const remote = remoteAgent({ url: far, headers: { "x-user": "alice" }, fetch: (url, init) => fetch(url.replace(far, hosted.url), init) });
    const heard = [];
    let tell = () => {};
    const leave = remote.subscribe({ userId: "me" }, (event) => (heard.push(event), tell()));
    const until = async (isIt) => {
      while (!heard.some(isIt)) await new Promise((resolve) => (tell = resolve));
      return heard.findLast(isIt);
    };
    const ofSession = (type, isIt = () => true) => (event) => event.type === type && event.slot.sessionId === "followed" && isIt(event);
    await half("followed", "f");
    await until(ofSession("text-delta"));
    assert.equal((await until(ofSession("session-changed"))).info.running, true);
    assert.equal((await said(await alice("sessions/followed"))).interrupted, false);
    await hosted.kill();
    await start();
    const end = await until(ofSession("error"));
    assert.deepEqual([end.error.code, end.callId, end.slot.userId], ["SUPERSEDED", "f", "me"]);
    const { info } = await until(ofSession("session-changed", ({ info }) => info.interrupted));
    assert.deepEqual([info.running, info.interrupted, info.messages >= 1], [false, true, true]);
    const seqs = heard.filter(({ callId }) => callId === "f").map(({ seq }) => seq);
    assert.deepEqual(seqs, seqs.map((_, index) => index));
    // A client without our package hears it too, as soon as it is connected again.
    const own = [];
    for await (const event of eventsOf(await alice("events?sessionId=followed"))) {
      own.push(event);
      if (event.type === "session-changed") break;
    }
    assert.deepEqual(own.map(({ type, error, info }) => error?.code ?? info?.interrupted ?? type), ["SUPERSEDED", true]);
    const [question] = await said(await alice("sessions/followed/history"));
    assert.deepEqual([question.content[0].text, question.turn], ["hold followed", "interrupted"]);
    leave();
    await remote.close();
    place.letGo("hold followed");
  });

  test("a question is seen at once while its call runs, in the history, the export and a search, and its id ends a page", async () => {
    await half("seen", "s");
    const history = await said(await alice("sessions/seen/history"));
    assert.deepEqual(history.map(({ turn }) => turn), ["open"]);
    const { messages, running, interrupted } = await said(await alice("sessions/seen"));
    assert.deepEqual([messages, running, interrupted], [1, true, false]);
    assert.deepEqual(await said(await alice(`sessions/seen/history?before=${history[0].id}`)), []);
    for (const format of ["lockgate", "agentscope", "markdown"]) {
      const text = await (await alice(`sessions/seen/export?format=${format}`)).text();
      assert.ok(text.includes("hold seen"), format);
      assert.ok(format === "lockgate" || !text.includes("open"), format);
    }
    const hits = await said(await alice("search?query=seen"));
    assert.deepEqual(hits.map(({ messageId }) => messageId), [history[0].id]);
    place.letGo("hold seen");
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

  test("W-01: the alarm closes turns that a restart has cut off, without a request", async () => {
    await half("asleep", "a");
    await hosted.kill();
    await start();
    assert.equal(await (await alice("wake")).text(), "woken");
    const { messages, running } = await said(await alice("sessions/asleep"));
    assert.deepEqual([messages, running], [2, false]);
    place.letGo("hold asleep");
  });

  test("W-01: a request that was not accepted before the object was evicted is not a turn, and runs when it is repeated", async () => {
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

  test("reading leaves nothing in the storage", async () => {
    const looker = asker(() => hosted, "looker");
    for (const path of ["sessions", "sessions/s/history", "sessions/s", "chat/s", "files"]) await said(await looker(path));
    assert.deepEqual(await said(await looker("keys")), []);
  });

  test("W-02: work after the reply is done even if its client has disconnected", async () => {
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

  test("an evicted result is a file of its session, which is read through the worker and deleted with the session", async () => {
    const word = "x".repeat(100);
    await allOf(await alice("sessions/large/messages", { input: `use count ${word}` }));
    const [path] = await said(await alice("files"));
    assert.match(path, /^tool-results\/large\//);
    assert.equal(await said(await alice(`file?path=${encodeURIComponent(path)}`)), `ran ${word}`);
    await said(await alice("sessions/large", undefined, { method: "DELETE" }));
    assert.deepEqual(await said(await alice("files")), []);
    assert.ok(!(await said(await alice("keys"))).some((key) => key.includes("tool-2dresults")));
  });

  test("P-05: a deleted user leaves no record of any kind in the object's storage", async () => {
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
