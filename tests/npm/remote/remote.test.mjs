// lockgate/remote against a worker in workerd: the methods of an agent, over connections that break.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHosted, startPlace } from "../support/hosted.mjs";
import { packedModule } from "../support/project.mjs";

let hosted, place, agent, remoteAgent, lockgate;
const headers = { "x-user": "alice" };

before(async () => {
  place = await startPlace();
  hosted = await startHosted(place);
  lockgate = await packedModule("lockgate");
  ({ remoteAgent } = await packedModule("lockgate/remote"));
  agent = remoteAgent({ url: hosted.url, headers });
});

after(async () => {
  await agent?.close();
  await hosted?.stop();
  place?.close();
});

/** A remote agent with this `fetch`. */
const over = (change) => remoteAgent({ url: hosted.url, headers: async () => headers, fetch: (url, init) => change(() => fetch(url, init), url, init) });

/** A response that breaks off after this number of bytes. */
function cut(response, nBytes) {
  const reader = response.body.getReader();
  let left = nBytes;
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      controller.enqueue(value.slice(0, left));
      left -= value.length;
      if (left > 0) return;
      await reader.cancel();
      controller.error(new TypeError("the connection is gone"));
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

async function rejection(promise) {
  const error = await promise.then(() => undefined, (reason) => reason);
  assert.ok(error !== undefined, "it was expected to reject");
  return error;
}

test("a remote agent is called, streams and remembers like a local one", async () => {
  const slot = { sessionId: "same" };
  const reply = await agent.call("hello", slot);
  assert.deepEqual([reply.text, reply.reason], ["you said hello", "stop"]);
  const call = agent.stream("again", slot);
  const events = [];
  for await (const event of call) events.push(event);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
  assert.ok(events.every((event) => event.callId === call.id && event.slot.sessionId === "same"));
  assert.equal((await call.result).text, "you said again");
  assert.equal((await agent.history(slot)).length, 4);
  assert.equal((await agent.session(slot)).messages, 4);
  assert.equal((await agent.listSessions(null, { limit: 1 }))[0].sessionId, "same");
  await agent.resend(slot, { input: "else" }).result;
  assert.equal((await agent.branches(slot)).length, 2);
  assert.match(await agent.exportSession(slot, "markdown"), /you said else/);
  const [count] = await agent.tools(slot);
  assert.deepEqual([count.name, count.source, count.readOnly, count.active], ["count", "agent", false, true]);
  assert.deepEqual(await agent.tools(), await agent.tools(slot));
  await agent.renameSession(slot, "named");
  assert.equal((await agent.search("else", { userId: null })).length, 2);
  await agent.files.write(null, "a.md", "text");
  assert.equal(await agent.files.read(null, "a.md"), "text");
  const lines = [];
  for await (const line of agent.exportUser(null)) lines.push(JSON.parse(line).title);
  assert.ok(lines.includes("named"));
  await agent.deleteSession(slot);
  assert.equal(await agent.session(slot), null);
});

test("an approval is asked and answered over the wire", async () => {
  const slot = { sessionId: "approve" };
  const { reason, asks } = await agent.call("use post remote", slot);
  assert.equal(reason, "asking");
  const [{ toolCallId }] = await agent.asks(slot);
  assert.equal(asks[0].toolCallId, toolCallId);
  assert.equal((await agent.confirm(slot, [{ toolCallId, approve: true }]).result).text, "the tool said: ran remote");
  assert.equal((await rejection(agent.confirm(slot, [{ toolCallId, approve: true }]).result)).code, "NOT_ASKING");
});

test("a broken connection is continued where it broke, and nothing is delivered or run twice", async () => {
  let n = 0;
  const shaky = over(async (send) => cut(await send(), 400 * ++n));
  const call = shaky.stream("use count shaky", { sessionId: "shaky" });
  const events = [];
  for await (const event of call) events.push(event);
  assert.ok(n > 3, "the connection never broke");
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
  assert.equal((await call.result).text, "the tool said: ran shaky");
  assert.equal(place.ran.filter(({ word }) => word === "shaky").length, 1);
  await shaky.close();
});

test("a question whose answer is lost on the way is repeated, and runs once", async () => {
  let lost = 2;
  const lossy = over(async (send, url) => {
    const response = await send();
    if (!url.endsWith("/messages") || lost-- <= 0) return response;
    await response.text();
    throw new TypeError("nobody answers");
  });
  assert.equal((await lossy.call("use count lossy", { sessionId: "lossy" })).text, "the tool said: ran lossy");
  assert.equal(place.ran.filter(({ word }) => word === "lossy").length, 1);
  assert.equal((await agent.history({ sessionId: "lossy" })).length, 4);
});

test("calls on one session that are made at once keep their order", async () => {
  const numbers = Array.from({ length: 12 }, (_, n) => n);
  await Promise.all(numbers.map((n) => agent.call(`question ${n}`, { sessionId: "ordered" })));
  const asked = (await agent.history({ sessionId: "ordered" })).filter(({ role }) => role === "user").map(({ content }) => content[0].text);
  assert.deepEqual(asked, numbers.map((n) => `question ${n}`));
});

test("a call is stopped by its handle, by leaving its loop, by its signal, and by others", async () => {
  const begun = async (text, options = {}) => {
    const call = agent.stream(text, { sessionId: text, ...options });
    const events = call[Symbol.asyncIterator]();
    for (;;) if ((await events.next()).value.type === "text-delta") return { call, events };
  };
  const one = await begun("hold one");
  one.call.stop();
  assert.deepEqual([(await one.call.result).reason, (await one.call.result).text], ["interrupted", "one "]);
  const two = await begun("hold two");
  await two.events.return();
  assert.equal((await two.call.result).reason, "interrupted");
  const controller = new AbortController();
  const three = await begun("hold three", { signal: controller.signal });
  controller.abort(new Error("enough"));
  const error = await rejection(three.call.result);
  assert.deepEqual([error.code, error.name, error.cause.message, error.partial.content[0].text], ["ABORTED", "AbortError", "enough", "one "]);
  const four = await begun("hold four");
  assert.equal(await agent.interrupt({ sessionId: "hold four" }), true);
  assert.equal((await four.call.result).reason, "interrupted");
  const five = await begun("hold five");
  five.call.detach();
  await five.events.return();
  const followed = await agent.attach({ sessionId: "hold five" });
  for (const text of ["hold one", "hold two", "hold three", "hold four", "hold five"]) place.letGo(text);
  assert.equal((await followed.result).text, "one two");
  assert.equal(await agent.attach({ sessionId: "hold five" }), null);
});

test("a running call can be followed from any event, and sessions can be subscribed to", async () => {
  const slot = { sessionId: "hold watched" };
  const heard = [];
  let tell;
  const changed = new Promise((resolve) => (tell = resolve));
  const leave = agent.subscribe(slot, (event) => (heard.push(event.type), event.type === "session-changed" && tell()));
  const call = agent.stream("hold watched", slot);
  await place.reached("hold watched");
  const followed = await agent.attach(slot, { after: 1 });
  place.letGo("hold watched");
  const events = [];
  for await (const event of followed) events.push(event);
  assert.equal(events[0].seq, 2);
  assert.equal(events.at(-1).type, "call-end");
  await call.result;
  await changed;
  leave();
  assert.ok(heard.includes("session-changed"));
});

test("a subscription whose connection breaks gets the rest of the calls that it follows", async () => {
  let isFirst = true;
  const broken = over(async (send, url) => {
    const response = await send();
    if (!url.includes("/events") || !isFirst) return response;
    isFirst = false;
    return cut(response, 300);
  });
  const heard = [];
  let tell = () => {};
  const leave = broken.subscribe({ userId: null }, (event) => (heard.push(event), tell()));
  const until = async (isIt) => {
    while (!heard.some(isIt)) await new Promise((resolve) => (tell = resolve));
  };
  const call = agent.stream("hold the line", { sessionId: "broken" });
  await place.reached("hold the line");
  await until(({ type }) => type === "text-delta");
  assert.equal(isFirst, false);
  place.letGo("hold the line");
  await call.result;
  await until(({ type }) => type === "call-end");
  const ofCall = heard.filter(({ callId }) => callId !== undefined);
  assert.deepEqual(ofCall.map(({ seq }) => seq), ofCall.map((_, index) => index));
  assert.equal(ofCall.filter(({ type }) => type === "text-delta").map(({ delta }) => delta).join(""), "one two");
  leave();
  await broken.close();
});

test("methods that do not work over HTTP are refused with a code and a hint", async () => {
  const slot = { sessionId: "s" };
  const refusals = [
    agent.call("hello", { ...slot, model: lockgate.demoModel() }),
    agent.call("hello", { ...slot, attributes: { db: 1 } }),
    agent.listUsers(),
    agent.call("hello", { ...slot, outputSchema: "text" }),
  ];
  for (const each of refusals) {
    const error = await rejection(each);
    assert.deepEqual([error.code, typeof error.hint, error instanceof Error], ["OPTIONS", "string", true]);
  }
  assert.equal((await rejection(agent.call("hello", { sessionId: ".." }))).code, "ID_INVALID");
  assert.equal((await rejection(agent.call("hello", { sessionId: "" }))).code, "ID_INVALID");
  assert.equal((await rejection(agent.call(7, slot))).code, "INPUT_INVALID");
  assert.equal((await rejection(agent.fork({ sessionId: "none" }, { sessionId: "t" }))).code, "NO_SUCH_SESSION");
  assert.throws(() => remoteAgent({}), { code: "OPTIONS" });
});

test("a worker that cannot be reached, or that is not a Lockgate worker, is STORE_UNAVAILABLE, and a closed client SHUTTING_DOWN", async () => {
  const gone = remoteAgent({ url: "http://127.0.0.1:9/agent" });
  const error = await rejection(gone.history({ sessionId: "s" }));
  assert.deepEqual([error.code, error.retryable, typeof error.hint], ["STORE_UNAVAILABLE", true, "string"]);
  const other = remoteAgent({ url: place.url, fetch: async () => new Response("<html>", { status: 502 }) });
  assert.equal((await rejection(other.history({ sessionId: "s" }))).code, "STORE_UNAVAILABLE");
  await gone.close();
  assert.equal((await rejection(gone.call("hello", { sessionId: "s" }))).code, "SHUTTING_DOWN");
});

test("answers match their output schema and are checked by it", async () => {
  const schema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => ({ value: { ...value, checked: true } }),
      jsonSchema: { input: () => ({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }) },
    },
  };
  place.answer = (text, response) => response.end(text === "a city" ? '{ "city": "Gent" }' : `you said ${text}`);
  const { output } = await agent.call("a city", { sessionId: "form", outputSchema: schema });
  assert.deepEqual(output, { city: "Gent", checked: true });
});

test("an earlier question is answered again over the wire, and an id that is no question is refused", async () => {
  const slot = { sessionId: "earlier" };
  for (const text of ["one", "two", "three"]) await agent.call(text, slot);
  const before = await agent.history(slot);
  assert.equal((await agent.resend(slot, { from: before[2].id }).result).text, "you said two");
  assert.deepEqual((await agent.history(slot)).map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.equal((await agent.branches(slot)).length, 2);
  const error = await rejection(agent.resend(slot, { from: before[3].id }).result);
  assert.deepEqual([error.code, error.status], ["INPUT_INVALID", 400]);
  assert.match(error.hint, /history\(slot\)/);
});

test("a useChat client edits and regenerates earlier messages", async () => {
  const slot = { sessionId: "chat-earlier" };
  for (const text of ["one", "two", "three"]) await agent.call(text, slot);
  const before = await agent.history(slot);
  const post = async (body) => {
    const response = await fetch(`${hosted.url}/chat`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify({ id: slot.sessionId, ...body }) });
    await response.text();
    return response.status;
  };
  const texts = async () => (await agent.history(slot)).map((message) => lockgate.textOf(message));
  // The id of an answer means the question that it answers.
  assert.equal(await post({ trigger: "regenerate-message", messageId: before[3].id, messages: [] }), 200);
  assert.deepEqual(await texts(), ["one", "you said one", "two", "you said two"]);
  // The client has its own ids for answers, and the session's for questions.
  const asked = { id: before[0].id, role: "user", parts: [{ type: "text", text: "one" }] };
  assert.equal(await post({ trigger: "regenerate-message", messageId: "client-7", messages: [asked] }), 200);
  assert.deepEqual(await texts(), ["one", "you said one"]);
  const edited = { ...asked, parts: [{ type: "text", text: "another one" }] };
  assert.equal(await post({ trigger: "submit-message", messageId: asked.id, messages: [edited] }), 200);
  assert.deepEqual(await texts(), ["another one", "you said another one"]);
  assert.equal(await post({ trigger: "submit-message", messageId: "nobody", messages: [edited] }), 400);
});
