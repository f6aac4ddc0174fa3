// Watching sessions with the packed package: subscribe and attach, within one process.
import { story } from "./project.mjs";

story(
  "whoever subscribes to a session sees all its calls, and nothing of other sessions",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const alice = { userId: "alice", sessionId: "s" };
    const seen = [];
    const leave = agent.subscribe(alice, (event) => seen.push(event));
    await agent.call("hello", alice);
    await agent.call("elsewhere", { userId: "alice", sessionId: "t" });
    await agent.call("elsewhere", { userId: "bob", sessionId: "s" });
    await agent.drain();
    const types = seen.map(({ type }) => type);
    assert.deepEqual(types.slice(0, 2), ["call-start", "accepted"]);
    assert.deepEqual(types.slice(-3), ["saved", "call-end", "session-changed"]);
    const ofCall = seen.filter(({ callId }) => callId !== undefined);
    assert.deepEqual(ofCall.map(({ seq }) => seq), ofCall.map((_, index) => index));
    assert.ok(ofCall.every(({ slot }) => slot.userId === "alice" && slot.sessionId === "s"));
    assert.equal(seen.at(-1).info.messages, 2);
    leave();
    await agent.call("unseen", alice);
    await agent.drain();
    assert.equal(seen.length, types.length);
  },
);

story(
  "a user's sessions, or everyone's, can be subscribed to, and deletions are seen",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const [ofAlice, ofAll] = [[], []];
    const note = (list) => (event) => /^(session|user)-/.test(event.type) && list.push(`${event.type} ${event.slot?.sessionId ?? event.userId}`);
    agent.subscribe({ userId: "alice" }, note(ofAlice));
    agent.subscribe("everyone", note(ofAll));
    await agent.call("hello", { userId: "alice", sessionId: "a" });
    await agent.call("hello", { sessionId: "nobody's" });
    await agent.renameSession({ userId: "alice", sessionId: "a" }, "renamed");
    await agent.deleteSession({ userId: "alice", sessionId: "a" });
    await agent.deleteUser("alice");
    await agent.drain();
    const expected = ["session-changed a", "session-changed a", "session-deleted a", "user-deleted alice"];
    assert.deepEqual(ofAlice, expected);
    assert.deepEqual(ofAll.toSorted(), [...expected, "session-changed nobody's"].toSorted());
  },
);

story(
  "a call that runs can be followed from its beginning or from an event on, and leaving it stops nothing",
  async ({ createAgent, modelOf, signpost, readAll, assert }) => {
    const go = signpost();
    const begun = signpost();
    const model = modelOf(async function* () {
      yield { type: "text", text: "one " };
      begun.pass();
      await go.passed;
      yield { type: "text", text: "two" };
    });
    const agent = await createAgent({ name: "helper", model });
    const slot = { sessionId: "s" };
    assert.equal(await agent.attach(slot), null);
    const result = agent.call("count", slot);
    await begun.passed;
    const [whole, left] = [await agent.attach(slot), await agent.attach(slot)];
    for await (const { type } of left) if (type === "accepted") break;
    const reading = readAll(whole);
    go.pass();
    const events = await reading;
    assert.equal((await result).text, "one two");
    assert.equal((await whole.result).text, "one two");
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index));
    assert.deepEqual([events[0].type, events.at(-1).type], ["call-start", "call-end"]);
    const said = events.filter(({ type }) => type === "text-delta").map(({ delta }) => delta);
    assert.equal(said.join(""), "one two");
    assert.equal(await agent.attach(slot), null);
  },
);

story(
  "several readers of one call see the same events under the same numbers",
  async ({ createAgent, modelOf, signpost, readAll, assert }) => {
    const go = signpost();
    const model = modelOf(async function* () {
      yield { type: "text", text: "one " };
      await go.passed;
      for (const text of ["two ", "three ", "four"]) yield { type: "text", text };
    });
    const agent = await createAgent({ name: "helper", model });
    const call = agent.stream("count", { sessionId: "s" });
    const events = [];
    let second;
    for await (const event of call) {
      events.push(event);
      if (event.type === "text-delta" && second === undefined) {
        const followed = await agent.attach({ sessionId: "s" }, { after: event.seq });
        second = readAll(followed).then((rest) => ({ from: event.seq + 1, rest }));
        go.pass();
      }
    }
    const { from, rest } = await second;
    assert.deepEqual(rest, events.slice(from));
    assert.ok(rest.length > 2);
  },
);

story(
  "a listener that throws harms neither the call nor other listeners",
  async ({ createAgent, echo, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const thrown = [];
    process.on("uncaughtException", (error) => thrown.push(error.message));
    const seen = [];
    agent.subscribe("everyone", () => {
      throw new Error("a listener's own");
    });
    agent.subscribe("everyone", ({ type }) => seen.push(type));
    assert.equal((await agent.call("hello", { sessionId: "s" })).reason, "stop");
    await agent.drain();
    assert.ok(seen.includes("call-end") && thrown.includes("a listener's own"));
  },
);

story("what cannot be subscribed to or followed is refused", async ({ createAgent, echo, refusal, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  for (const [of, listener] of [["all", () => {}], [null, () => {}], [{}, () => {}], ["everyone", "no function"]])
    assert.equal((await refusal(() => agent.subscribe(of, listener))).code, "INPUT_INVALID");
  assert.equal((await refusal(() => agent.attach({ sessionId: "s" }, { after: "first" }))).code, "INPUT_INVALID");
  assert.equal((await refusal(() => agent.attach({ sessionId: "" }))).code, "ID_INVALID");
});
