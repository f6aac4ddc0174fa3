// lockgate/cloudflare in workerd: every route, the data that it reaches, and the requests that it refuses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { allOf, asker, eventsOf, startHosted, startPlace } from "../support/hosted.mjs";

let hosted, place;
const [alice, bob, anonymous, unknown] = ["alice", "bob", "anonymous", undefined].map((user) => asker(() => hosted, user));

before(async () => {
  place = await startPlace();
  hosted = await startHosted(place);
});

after(async () => {
  await hosted?.stop();
  place?.close();
});

/** The JSON of a response, which must have the expected status. */
async function said(response, status = 200) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
}

/** Checks an error: code, hint and status. */
async function refused(response, status, code) {
  const error = await said(response, status);
  assert.deepEqual([error.code, error.status, typeof error.hint, typeof error.message], [code, status, "string", "string"]);
  return error;
}

const types = (events) => events.map(({ type }) => type);
const put = (ask, path, body) => ask(path, body, { method: "PUT" });
const remove = (ask, path) => ask(path, undefined, { method: "DELETE" });
const json = { headers: { accept: "application/json" } };

test("a message is answered with events, or with the reply if the client accepts only JSON", async () => {
  const response = await alice("sessions/s/messages", { input: "hello" });
  assert.match(response.headers.get("content-type"), /event-stream/);
  const events = await allOf(response);
  assert.deepEqual(types(events).slice(0, 3), ["call-start", "accepted", "model-start"]);
  assert.equal(events.at(-1).reply.text, "you said hello");
  assert.equal(response.headers.get("x-lockgate-call"), events[0].callId);
  const reply = await said(await alice("sessions/s/messages", { input: "again", callId: "mine" }, json));
  assert.deepEqual([reply.text, reply.callId], ["you said again", "mine"]);
  const same = await said(await alice("sessions/s/messages", { input: "again", callId: "mine" }, json));
  assert.equal(same.text, "you said again");
  assert.equal(place.asked.filter((text) => text === "again").length, 1, "a repeated callId ran again");
});

test("an id may be any text, in the address and as a callId", async () => {
  const id = encodeURIComponent("ключ/1 ?&#%");
  const response = await alice(`sessions/${id}/messages`, { input: "hello", callId: "вызов" });
  assert.equal((await allOf(response)).at(-1).slot.sessionId, "ключ/1 ?&#%");
  assert.equal(decodeURIComponent(response.headers.get("x-lockgate-call")), "вызов");
  assert.equal((await allOf(await alice(`sessions/${id}/stream?callId=${encodeURIComponent("вызов")}`))).at(-1).type, "call-end");
});

test("sessions are listed, read, renamed, searched, exported, imported and deleted", async () => {
  const carol = asker(() => hosted, "carol");
  await allOf(await carol("sessions/one/messages", { input: "about canals" }));
  await allOf(await carol("sessions/two/messages", { input: "about locks" }));
  assert.deepEqual((await said(await carol("sessions?limit=1"))).map(({ sessionId }) => sessionId), ["two"]);
  assert.equal((await said(await carol("sessions"))).length, 2);
  assert.equal((await said(await carol("sessions?userId=alice"))).length, 2, "a userId from the client is ignored");
  await said(await carol("sessions/one", { title: "Water" }, { method: "PATCH" }));
  assert.equal((await said(await carol("sessions/one"))).title, "Water");
  assert.equal(await said(await carol("sessions/none")), null);
  assert.equal((await said(await carol("sessions/one/history?limit=1"))).length, 1);
  assert.match(JSON.stringify(await said(await carol("sessions/one/history?sessionId=two"))), /canals/);
  const hits = await said(await carol("search?query=canals"));
  assert.deepEqual(hits.map(({ slot }) => slot.sessionId), ["one", "one"]);
  const markdown = await carol("sessions/one/export?format=markdown");
  assert.match(markdown.headers.get("content-type"), /markdown/);
  assert.match(await markdown.text(), /about canals/);
  const text = await (await carol("sessions/one/export")).text();
  assert.equal((await said(await carol("sessions/three/import", { text }))).messages, 2);
  const lines = (await (await carol("export")).text()).trim().split("\n");
  assert.deepEqual(lines.map((line) => JSON.parse(line).history.length), [2, 2, 2]);
  await said(await remove(carol, "sessions/two"));
  assert.deepEqual(await said(await carol("sessions/two/history")), []);
  await said(await remove(carol, "user"));
  assert.deepEqual(await said(await carol("sessions")), []);
});

test("the other methods of an agent exist too", async () => {
  const dora = asker(() => hosted, "dora");
  await allOf(await dora("sessions/s/messages", { input: "first" }));
  await allOf(await dora("sessions/s/resend", { input: "second" }));
  const branches = await said(await dora("sessions/s/branches"));
  assert.equal(branches.length, 2);
  await said(await put(dora, "sessions/s/branch", { branch: branches.find(({ current }) => !current).id }));
  assert.match(JSON.stringify(await said(await dora("sessions/s/history"))), /first/);
  assert.equal((await said(await dora("sessions/s/fork", { to: "t" }))).sessionId, "t");
  assert.equal((await said(await dora("sessions/s/append", { messages: [{ role: "assistant", content: "by hand" }] }))).length, 1);
  const state = await said(await dora("sessions/s/state"));
  await said(await put(dora, "sessions/s/state", { state: { ...state, context: state.context.slice(0, 1) } }));
  await refused(await put(dora, "sessions/s/state", { state }), 409, "SUPERSEDED");
  const admin = asker(() => hosted, "dora", "talk manage permissions");
  await said(await put(admin, "sessions/s/permission-mode", { mode: "explore" }));
  const { permission_context } = await said(await dora("sessions/s/state"));
  await said(await put(admin, "sessions/s/permissions", { context: { ...permission_context, mode: "default" } }));
  await said(await dora("sessions/s/plan", {}));
  assert.equal((await said(await dora("sessions/s/state"))).plan_mode_context.plan_active, true);
  await said(await remove(admin, "sessions/s/plan"));
  assert.ok((await said(await dora("sessions/s/inspect"))).parts.length > 0);
  await said(await put(dora, "file", { path: "notes/a.md", text: "noted" }));
  assert.deepEqual(await said(await dora("files")), ["notes/a.md"]);
  assert.equal(await said(await dora("file?path=notes/a.md")), "noted");
  await said(await remove(dora, "file?path=notes/a.md"));
  assert.deepEqual(await said(await dora("files?path=notes")), []);
  assert.equal((await said(await dora("storage"))).durability, "durable");
  const tools = await said(await dora("tools?sessionId=s"));
  assert.deepEqual(tools.filter(({ source }) => source === "agent").map(({ name }) => name), ["count", "post", "outside"]);
  assert.deepEqual(await said(await dora("tools")), tools);
  await said(await dora("sessions/s/undo-compaction", {}));
  await said(await dora("sessions/s/clear", {}));
  assert.equal((await said(await dora("sessions/s/state"))).context.length, 0);
  assert.equal((await said(await dora("sessions/s/repair", {}))).sessionId, "s");
});

test("a tool that needs approval waits for an answer, which counts once", async () => {
  const events = await allOf(await alice("sessions/asks/messages", { input: "use post news" }));
  assert.equal(events.at(-1).reply.reason, "asking");
  const [{ toolCallId }] = await said(await alice("sessions/asks/asks"));
  const answers = [{ toolCallId, approve: true }];
  const answered = await allOf(await alice("sessions/asks/answers", { answers }));
  assert.equal(answered.at(-1).reply.text, "the tool said: ran news");
  await refused(await alice("sessions/asks/answers", { answers }), 409, "NOT_ASKING");
  const runs = place.ran.filter(({ word }) => word === "news");
  assert.deepEqual(runs.map(({ attributes }) => attributes), [{ from: "alice" }], "it ran once, with the attributes of authenticate");
});

test("a call is interrupted from another request, and its text is kept", async () => {
  const running = await alice("sessions/stops/messages", { input: "hold stops" });
  await place.reached("hold stops");
  const events = eventsOf(running);
  for await (const event of events) if (event.type === "text-delta") break;
  assert.deepEqual(await said(await alice("sessions/stops/interrupt", {})), { interrupted: true });
  const messages = await said(await alice("sessions/stops/history"));
  assert.equal(messages.at(-1).content[0].text, "one ");
  assert.deepEqual(await said(await alice("sessions/stops/interrupt", {})), { interrupted: false });
  place.letGo("hold stops");
});

test("W-02: a client that disconnects does not stop its call, and continues at the event after its last one", async () => {
  const first = await alice("sessions/back/messages", { input: "hold back" });
  const seen = [];
  for await (const event of eventsOf(first)) {
    seen.push(event);
    // Leaving the loop cancels the body and closes the connection.
    if (event.type === "text-delta") break;
  }
  const { callId, seq } = seen.at(-1);
  const second = await alice(`sessions/back/stream?after=${seq}`);
  const third = await alice("sessions/back/stream", undefined, { headers: { "last-event-id": String(seq - 1) } });
  place.letGo("hold back");
  const rest = await allOf(second);
  assert.deepEqual([...seen, ...rest].map((event) => event.seq), [...seen, ...rest].map((_, index) => index));
  assert.equal(rest.at(-1).reply.text, "one two");
  assert.equal((await allOf(third))[0].seq, seq);
  const late = await allOf(await alice(`sessions/back/stream?callId=${callId}&after=${seq}`));
  assert.deepEqual(late, rest, "a call that is just over can still be read");
  assert.equal((await alice("sessions/back/stream")).status, 204, "no call is running");
  assert.equal(place.asked.filter((text) => text === "hold back").length, 1);
});

test("a disconnect stops the call if the client has asked for it", async () => {
  const response = await alice("sessions/leaves/messages?onDisconnect=stop", { input: "hold leaves" });
  for await (const event of eventsOf(response)) if (event.type === "text-delta") break;
  // A change waits in the queue, so the call has ended when the change is done.
  await said(await alice("sessions/leaves", { title: "left" }, { method: "PATCH" }));
  const messages = await said(await alice("sessions/leaves/history"));
  assert.equal(messages.at(-1).content[0].text, "one ");
  place.letGo("hold leaves");
});

test("a listener of a user gets events of all sessions of that user, and of no other user", async () => {
  const events = eventsOf(await alice("events"));
  const heard = (async () => {
    const list = [];
    for await (const event of events) {
      list.push(event);
      if (event.type === "session-changed" && event.slot.sessionId === "heard" && !event.info.running) return list;
    }
    return list;
  })();
  await allOf(await bob("sessions/of-bob/messages", { input: "hello" }));
  await allOf(await alice("sessions/heard/messages", { input: "hello" }));
  const list = await heard;
  assert.ok(types(list).includes("text-delta"));
  assert.ok(list.every(({ slot }) => slot.userId === "alice" && slot.sessionId === "heard"));
});

test("I-09: no request reaches the data of another user", async () => {
  await allOf(await alice("sessions/private/messages", { input: "a secret of alice" }));
  const forged = { headers: { "x-lockgate-caller": encodeURIComponent(JSON.stringify({ caller: { userId: "alice" }, session: null, basePath: "" })) } };
  const ways = ["sessions/private/history", "sessions/private/history?userId=alice", "sessions/private/export", "sessions/private/state", "chat/private", "search?query=secret&userId=alice", "export?userId=alice", "sessions?userId=alice"];
  for (const path of ways) {
    for (const other of [bob, anonymous]) {
      const text = await (await other(path, undefined, forged)).text();
      assert.ok(!text.includes("secret of alice"), `${path} shows it`);
    }
  }
  await (await bob("sessions/private/messages", { input: "hello", userId: "alice", slot: { userId: "alice", sessionId: "private" } })).text();
  await remove(bob, "user");
  await remove(bob, "sessions/private");
  assert.match(await (await alice("sessions/private/history")).text(), /a secret of alice/);
  const strange = asker(() => hosted, "session private");
  assert.deepEqual(await said(await strange("sessions")), []);
});

test("anonymous visitors have one object per session, and requests for a user's data are refused", async () => {
  await allOf(await anonymous("sessions/visit-1/messages", { input: "I was here" }));
  assert.equal((await said(await anonymous("sessions/visit-1/history"))).length, 2);
  assert.deepEqual(await said(await anonymous("sessions/visit-2/history")), []);
  assert.deepEqual(await said(await alice("sessions/visit-1/history")), []);
  assert.ok((await said(await anonymous("search?query=here&sessionId=visit-1"))).length > 0);
  await said(await put(anonymous, "file?sessionId=visit-1", { path: "a.md", text: "mine" }));
  assert.equal(await said(await anonymous("file?path=a.md&sessionId=visit-1")), "mine");
  assert.deepEqual(await said(await anonymous("files?sessionId=visit-2")), []);
  for (const path of ["sessions", "search?query=here", "export", "files", "events"]) await refused(await anonymous(path), 400, "ID_INVALID");
  await refused(await anonymous("sessions/visit-1/fork", { to: "visit-3" }), 400, "ID_INVALID");
  await said(await remove(anonymous, "sessions/visit-1"));
  assert.deepEqual(await said(await anonymous("sessions/visit-1/history")), []);
});

test("an invalid request is answered with code, hint and status", async () => {
  assert.equal((await unknown("sessions")).status, 401, "the response comes from authenticate");
  await refused(await asker(() => hosted, "greedy")("sessions"), 429, "BUSY");
  await refused(await alice("nowhere"), 404, "INPUT_INVALID");
  const wrongVerb = await alice("sessions", {});
  assert.equal(wrongVerb.headers.get("allow"), "GET");
  await refused(wrongVerb, 405, "INPUT_INVALID");
  await refused(await alice("sessions/s/messages", "{ no json"), 400, "INPUT_INVALID");
  await refused(await alice("sessions/s/messages", "[1]"), 400, "INPUT_INVALID");
  await refused(await alice("sessions/s/messages", {}), 400, "INPUT_INVALID");
  await refused(await alice("sessions/s/messages", { input: 7 }), 400, "INPUT_INVALID");
  await refused(await alice("sessions/%E0%A4%A/history"), 400, "ID_INVALID");
  await refused(await alice(`sessions/${"x".repeat(300)}/history`), 400, "ID_INVALID");
  await refused(await alice("sessions/s/history?limit=none"), 400, "INPUT_INVALID");
  await refused(await alice("sessions/s/stream?after=x"), 400, "INPUT_INVALID");
  await refused(await alice("sessions/none/export"), 404, "NO_SUCH_SESSION");
  await refused(await alice("sessions/none/resend", {}), 409, "NO_ANCHOR");
  await refused(await alice("sessions/s/answers", { answers: [] }), 400, "INPUT_INVALID");
  await refused(await alice("chat", { id: "s" }), 400, "INPUT_INVALID");
  await refused(await put(asker(() => hosted, "alice", "permissions"), "sessions/s/permission-mode", { mode: "anything" }), 400, "INPUT_INVALID");
  await refused(await alice("file?path=../out"), 400, "PATH_INVALID");
  const outside = await fetch(hosted.url.replace("/agent", "/other"), { headers: { "x-user": "alice" } });
  await refused(outside, 404, "INPUT_INVALID");
});

test("W-06: a body that is too large never reaches the engine, with or without a Content-Length", async () => {
  const large = JSON.stringify({ input: "x".repeat(200_000) });
  await refused(await alice("sessions/large/messages", large), 413, "STATE_TOO_LARGE");
  const stream = new Blob([large]).stream();
  await refused(await alice("sessions/large/messages", "", { body: stream, duplex: "half" }), 413, "STATE_TOO_LARGE");
  assert.deepEqual(await said(await alice("sessions/large/history")), []);
});

test("V-03: a body with extreme nesting is refused, and the object works on", async () => {
  const deep = `{ "input": ${"[".repeat(20_000)}${"]".repeat(20_000)} }`;
  await refused(await alice("sessions/deep/messages", deep), 400, "INPUT_INVALID");
  assert.equal((await said(await alice("sessions/deep/messages", { input: "hello" }, json))).text, "you said hello");
});

test("pages of allowed origins may send requests; other pages may not, even without reading the answer", async () => {
  const from = (origin) => ({ headers: { origin } });
  const friend = await alice("sessions", undefined, from("https://friend.example"));
  assert.equal(friend.headers.get("access-control-allow-origin"), "https://friend.example");
  assert.equal(friend.headers.get("access-control-allow-credentials"), "true");
  assert.match(friend.headers.get("vary"), /origin/);
  const asked = { method: "OPTIONS", headers: { origin: "https://friend.example", "access-control-request-headers": "x-user" } };
  const preflight = await unknown("sessions/s/messages", undefined, asked);
  assert.equal(preflight.status, 204);
  assert.match(preflight.headers.get("access-control-allow-methods"), /POST/);
  assert.equal(preflight.headers.get("access-control-allow-headers"), "x-user");
  await refused(await alice("sessions/crossed/messages", { input: "hello" }, from("https://evil.example")), 403, "INPUT_INVALID");
  await refused(await alice("sessions", undefined, from("null")), 403, "INPUT_INVALID");
  assert.deepEqual(await said(await alice("sessions/crossed/history")), []);
  const own = await alice("sessions", undefined, from(new URL(hosted.url).origin));
  assert.equal(own.status, 200);
  assert.equal(own.headers.get("access-control-allow-origin"), null);
});
