// lockgate/remote against a worker in workerd: the surface of an agent, over connections that break.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHosted, startPlace } from "./hosted.mjs";
import { packedModule } from "./project.mjs";

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

/** An agent whose connections are as this makes them. */
const over = (change) => remoteAgent({ url: hosted.url, headers: async () => headers, fetch: (url, init) => change(() => fetch(url, init), url, init) });

/** A response that breaks off behind so many bytes. */
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

test("a remote agent is called, streams and remembers like one that is here", async () => {
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

test("a connection that breaks is made again where it broke, and nothing is seen or run twice", async () => {
  let n = 0;
  const shaky = over(async (send) => cut(await send(), 400 * ++n));
  const call = shaky.stream("use count shaky", { sessionId: "shaky" });
  const events = [];
  for await (const event of call) events.push(event);
  assert.ok(n > 3, "it never broke");
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
  assert.equal((await call.result).text, "the tool said: ran shaky");
  assert.equal(place.ran.filter(({ word }) => word === "shaky").length, 1);
  await shaky.close();
});

test("a question whose answer is lost on the way is asked again, and runs once", async () => {
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

test("a call that runs can be followed from an event on, and sessions can be listened to", async () => {
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

test("what cannot be offered over the wire is refused with a code and a hint", async () => {
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

test("a worker that cannot be reached is STORE_UNAVAILABLE, one that is no worker of ours too, and a closed client SHUTTING_DOWN", async () => {
  const gone = remoteAgent({ url: "http://127.0.0.1:9/agent" });
  const error = await rejection(gone.history({ sessionId: "s" }));
  assert.deepEqual([error.code, error.retryable, typeof error.hint], ["STORE_UNAVAILABLE", true, "string"]);
  const other = remoteAgent({ url: place.url, fetch: async () => new Response("<html>", { status: 502 }) });
  assert.equal((await rejection(other.history({ sessionId: "s" }))).code, "STORE_UNAVAILABLE");
  await gone.close();
  assert.equal((await rejection(gone.call("hello", { sessionId: "s" }))).code, "SHUTTING_DOWN");
});

test("answers in a form come back in that form, checked by the schema that was given", async () => {
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
