// What an object holds for its clients: bounded in bytes, and gone when it is deleted.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { allOf, asker, eventsOf, startHosted, startPlace, workerSource } from "../support/hosted.mjs";
import { packedModule } from "../support/project.mjs";

const HELD = 1_000_000;
let hosted, place;
const as = (user, rights) => asker(() => hosted, user, rights);

before(async () => {
  place = await startPlace();
  place.answer = (text, response) => response.end(text.length > 1_000 ? "read" : `you said ${text}`);
  const more = `maxBodyBytes: 4_194_304, maxHeldBytes: ${HELD}, bodyTimeoutMs: 300,`;
  // The test reads how much is held from inside the object.
  const body = `async fetch(request) {
    return new URL(request.url).pathname.endsWith("/storage") ? Response.json(this.heldBytes) : super.fetch(request);
  }`;
  hosted = await startHosted(place, { source: workerSource(body, more) });
});

after(async () => {
  await hosted?.stop();
  place?.close();
});

/** Opens a stream without reading it. `read` reads all of it. */
function unread(user, path) {
  const request = http.request(`${hosted.url}/${path}`, { agent: false, headers: { "x-user": user } });
  request.on("error", () => {});
  const opened = new Promise((resolve) => request.on("response", (response) => resolve(response.pause())));
  request.end();
  return {
    opened,
    async read() {
      let text = "";
      for await (const chunk of (await opened).setEncoding("utf8")) text += chunk;
      return text.split("\n\n").flatMap((block) => /^data: (.*)$/m.exec(block)?.[1] ?? []).map((data) => JSON.parse(data));
    },
    /** The text up to an event of this type, or to the end of the response. */
    async readUntil(type) {
      let text = "";
      for await (const chunk of (await opened).setEncoding("utf8")) {
        text += chunk;
        if (text.includes(`"type":"${type}"`)) break;
      }
      return text;
    },
    close: () => request.destroy(),
  };
}

const big = (n = 300_000) => "x".repeat(n);
const heldBy = async (ask) => (await ask("storage")).json();

test("a listener that was too slow gets a last event that says where to go on", async (t) => {
  const amy = as("amy");
  const reader = unread("amy", "events");
  t.after(() => reader.close());
  await reader.opened;
  // Enough to fill the buffers of the connection and of the object.
  for (let n = 0; n < 40; n += 1) await (await amy(`sessions/s${n}/messages`, { input: big() })).text();
  const events = await reader.read();
  const { type, code, read, hint } = events.at(-1);
  assert.deepEqual([type, code, read, typeof hint], ["cut-off", "BUSY", "/agent/events", "string"]);
  assert.ok(events.length > 1, "what it could read before was lost");
});

test("readers that never read hold no more than maxHeldBytes, and cost other readers nothing", async (t) => {
  const ann = as("ann");
  const readers = Array.from({ length: 20 }, () => unread("ann", "events"));
  t.after(() => readers.forEach((reader) => reader.close()));
  await Promise.all(readers.map(({ opened }) => opened));
  for (let n = 0; n < 12; n += 1) {
    const events = await allOf(await ann(`sessions/s${n}/messages`, { input: big() }));
    assert.equal(events.at(-1).type, "call-end", "a reader that reads was cut off");
    assert.ok((await heldBy(ann)) <= HELD);
  }
});

test("a reader of a running call that was too slow goes on where the cut-off event says", async (t) => {
  const call = await as("ben")("sessions/slow/messages", { input: "hold slow", callId: "slow" });
  await place.reached("hold slow");
  void call.text();
  const reader = unread("ben", "sessions/slow/stream?callId=slow&after=-1");
  t.after(() => reader.close());
  await reader.opened;
  place.letGo("hold slow");
  const all = await reader.read();
  assert.equal(all.at(-1).type, "call-end");
  const rest = await allOf(await as("ben")(`sessions/slow/stream?callId=slow&after=${all.at(-3).seq}`));
  assert.deepEqual(rest, all.slice(-2));
});

test("ended calls are kept only as long as they fit; after that a reconnect gets 409 with the URL of the stored turn", async () => {
  const cleo = as("cleo");
  for (let n = 0; n < 64; n += 1) await (await cleo(`sessions/c${n}/messages`, { input: big(100_000), callId: `call-${n}` })).text();
  assert.ok((await heldBy(cleo)) <= HELD);
  const late = await cleo("sessions/c0/stream?callId=call-0&after=1");
  const refusal = await late.json();
  assert.deepEqual([late.status, refusal.code, refusal.read, refusal.ended], [409, "SUPERSEDED", "/agent/sessions/c0/history", true]);
  const kept = await allOf(await cleo("sessions/c63/stream?callId=call-63"));
  assert.equal(kept.at(-1).reply.text, "read");
  assert.equal((await (await cleo("sessions/c0/history")).json()).length, 2);
});

test("a remote agent whose call is not kept any more gets its outcome from the store", async () => {
  const { remoteAgent } = await packedModule("lockgate/remote");
  let breaks = true;
  const send = async (url, init) => {
    const response = await fetch(url, init);
    if (!breaks || !url.endsWith("/messages")) return response;
    breaks = false;
    // The connection breaks after the first event, and the events are gone when the client is back.
    const events = eventsOf(response);
    const { value } = await events.next();
    await allOf(await as("dan")("sessions/kept/stream?callId=mine"));
    for (let n = 0; n < 10; n += 1) await (await as("dan")(`sessions/fill${n}/messages`, { input: big() })).text();
    return new Response(`data: ${JSON.stringify(value)}\n\n`, { headers: response.headers });
  };
  const agent = remoteAgent({ url: hosted.url, headers: { "x-user": "dan" }, fetch: send });
  assert.equal((await agent.call("hello", { sessionId: "kept", callId: "mine" })).text, "you said hello");
  await agent.close();
});

test("an answer that nobody reads is held in the budget, and is cut off for others", async (t) => {
  const eve = as("eve");
  for (let n = 0; n < 3; n += 1) await (await eve("sessions/long/messages", { input: big(200_000) })).text();
  const readers = Array.from({ length: 12 }, () => unread("eve", "sessions/long/history"));
  t.after(() => readers.forEach((reader) => reader.close()));
  const statuses = await Promise.all(readers.map(async ({ opened }) => (await opened).statusCode));
  assert.ok(statuses.every((status) => status === 200 || status === 429), `${statuses}`);
  assert.ok(statuses.includes(429), "all of them are held");
  assert.ok((await heldBy(eve)) <= HELD);
});

test("unfinished requests of one user are refused when they are too large together; small ones and other users are not", async () => {
  const fay = as("fay");
  const texts = Array.from({ length: 8 }, (_, n) => `hold ${n} ${big()}`);
  const responses = await Promise.all(texts.map((input, n) => fay(`sessions/h${n}/messages`, { input })));
  const refused = responses.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 5 && refused.length < 8, `${refused.length} were refused`);
  assert.equal((await refused[0].json()).code, "BUSY");
  assert.equal((await as("gus")("sessions/s/messages", { input: "hello" })).status, 200);
  for (const text of texts) place.letGo(text);
  for (const response of responses) if (response.status === 200) await response.text();
});

test("after the deletion of a session or a user no route shows its text from memory", async () => {
  const hal = as("hal");
  const tell = async (session, callId) => void (await (await hal(`sessions/${session}/messages`, { input: "a deleted secret", callId })).text());
  const ways = (session, callId) => [`sessions/${session}/stream?callId=${callId}`, `sessions/${session}/stream`, `chat/${session}`, `chat/${session}/stream`, `sessions/${session}/history`, `search?query=secret&sessionId=${session}`];
  const check = async (session, callId) => {
    for (const path of ways(session, callId)) {
      const response = await hal(path);
      assert.ok(response.status < 500, path);
      assert.ok(!(await response.text()).includes("deleted secret"), `${path} shows it`);
    }
  };
  await tell("one", "call-one");
  await tell("two", "call-two");
  assert.match(await (await hal("sessions/one/stream?callId=call-one")).text(), /deleted secret/);
  await (await hal("sessions/one", undefined, { method: "DELETE" })).text();
  await check("one", "call-one");
  assert.match(await (await hal("sessions/two/stream?callId=call-two")).text(), /deleted secret/, "another session lost its events");
  await (await hal("user", undefined, { method: "DELETE" })).text();
  await check("two", "call-two");
});

test("a listener that has not read the events of a session does not get them after the session is deleted", async (t) => {
  const ida = as("ida");
  const reader = unread("ida", "events");
  t.after(() => reader.close());
  await reader.opened;
  // Enough to fill the buffers of the connection, so that the rest waits in the object.
  for (let n = 0; n < 40; n += 1) await (await ida("sessions/gone/messages", { input: `secret ${n} ${big()}` })).text();
  await (await ida("sessions/gone", undefined, { method: "DELETE" })).text();
  assert.ok((await heldBy(ida)) < 200_000);
  const seen = await reader.readUntil("session-deleted");
  assert.match(seen, /secret 0/);
  assert.ok(!seen.includes("secret 39"), "the last events were kept");
});

test("the deletion of an anonymous session drops its events too", async () => {
  const visitor = as("anonymous");
  await (await visitor("sessions/visit/messages", { input: "a deleted secret", callId: "mine" })).text();
  await (await visitor("sessions/visit", undefined, { method: "DELETE" })).text();
  assert.ok(!(await (await visitor("sessions/visit/stream?callId=mine")).text()).includes("secret"));
});

test("a body that does not arrive in time is answered with 408, and others are answered meanwhile", async () => {
  const request = http.request(`${hosted.url}/sessions/slow/messages`, { method: "POST", agent: false, headers: { "x-user": "jon", "content-type": "application/json", "content-length": 1_000 } });
  request.on("error", () => {});
  const answered = new Promise((resolve) => request.on("response", resolve));
  request.write('{ "input": "');
  assert.equal((await as("jon")("sessions/s/messages", { input: "hello" })).status, 200);
  assert.equal((await answered).statusCode, 408);
  request.destroy();
  assert.deepEqual(await (await as("jon")("sessions/slow/history")).json(), []);
});
