// `subscribe` and `attach` with the packed package, within one process.
import { story } from "../support/project.mjs";

story(
  "a listener of a session gets all calls of that session, and nothing of other sessions",
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
    assert.equal(types.at(-1), "session-changed");
    assert.deepEqual(types.filter((type) => type !== "session-changed").slice(-2), ["saved", "call-end"]);
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
  "the sessions of one user or of all users can be subscribed to, deletions included",
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
    // A call begins and ends, and a session is renamed.
    const expected = [...Array(3).fill("session-changed a"), "session-deleted a", "user-deleted alice"];
    assert.deepEqual(ofAlice, expected);
    const ofNobody = Array(2).fill("session-changed nobody's");
    assert.deepEqual(ofAll.toSorted(), [...expected, ...ofNobody].toSorted());
  },
);

story(
  "a running call can be followed from its beginning or from any event, and leaving it stops nothing",
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

story("invalid subscriptions and attachments are refused", async ({ createAgent, echo, refusal, assert }) => {
  const agent = await createAgent({ name: "helper", model: echo() });
  for (const [of, listener] of [["all", () => {}], [null, () => {}], [{}, () => {}], ["everyone", "no function"]])
    assert.equal((await refusal(() => agent.subscribe(of, listener))).code, "INPUT_INVALID");
  assert.equal((await refusal(() => agent.attach({ sessionId: "s" }, { after: "first" }))).code, "INPUT_INVALID");
  assert.equal((await refusal(() => agent.attach({ sessionId: "" }))).code, "ID_INVALID");
});

story(
  "session-changed says when a call runs, asks, ends and was stopped",
  async ({ createAgent, modelOf, tool, signpost, assert }) => {
    const [reached, go] = [signpost(), signpost()];
    const model = modelOf(async function* ({ messages }) {
      if (messages.at(-1).role === "tool") return yield { type: "text", text: "sent" };
      yield { type: "text", text: "one moment " };
      reached.pass();
      await go.passed;
      yield { type: "tool-call", index: 0, id: "c1", name: "send", arguments: "{}" };
    });
    const send = tool({ name: "send", description: "sends", inputSchema: { type: "object" }, needsApproval: true, execute: () => "ok" });
    const agent = await createAgent({ name: "helper", model, tools: [send] });
    const slot = { sessionId: "s", userId: "ada" };
    const seen = [];
    let tell = () => {};
    agent.subscribe({ userId: "ada" }, ({ type, info }) => {
      if (type !== "session-changed") return;
      seen.push([info.running, info.asking, info.interrupted]);
      tell();
    });
    const until = async (n) => {
      while (seen.length < n) await new Promise((resolve) => (tell = resolve));
    };
    const call = agent.call("send it", slot);
    await reached.passed;
    await until(1);
    assert.deepEqual(seen, [[true, false, false]], "while the model answers");
    go.pass();
    assert.equal((await call).reason, "asking");
    await until(2);
    assert.deepEqual(seen[1], [false, true, false]);
    await agent.confirm(slot, [{ toolCallId: "c1", approve: true }]).result;
    await until(4);
    assert.equal(seen[2][0], true);
    assert.deepEqual(seen[3], [false, false, false]);
    await agent.drain();
    assert.equal(seen.length, 4);
  },
);

story(
  "a call that is refused before its input is stored makes no event of a session that does not exist",
  async ({ createAgent, echo, rejection, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    const seen = [];
    agent.subscribe("everyone", ({ type }) => /^session/.test(type) && seen.push(type));
    assert.equal((await rejection(agent.resume({ sessionId: "none" }).result)).code, "NO_SUCH_SESSION");
    await agent.drain();
    assert.ok(!seen.includes("session-changed"), String(seen));
  },
);
