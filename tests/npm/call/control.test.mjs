// Control of sessions by the host, with the packed package: interrupt, shutdown, changes, and REENTRANT.
import { story } from "../support/project.mjs";

story(
  "G-05: without AsyncLocalStorage tools and middleware are recognised by their signal, and a deadline ends other reentrant calls",
  async ({ createAgent, tool, memoryStore, modelOf, textOf, assert }) => {
    // As in a page: there is no AsyncLocalStorage.
    process.getBuiltinModule = undefined;
    let agent;
    const codes = {};
    const own = { sessionId: "s", userId: "alice" };
    const later = () => new Promise((resolve) => setImmediate(resolve));
    const note = (name, promise) => promise.then(({ text }) => (codes[name] = text), (error) => (codes[name] = error.code));
    const unknown = [];
    const self = tool({
      name: "self",
      description: "calls its own session",
      inputSchema: { type: "object" },
      timeoutMs: 100,
      async execute(_, { signal }) {
        await later();
        await note("a tool, by its signal", agent.call("again", { ...own, signal }));
        unknown.push(note("a tool, by nothing", agent.call("again", own)));
        await unknown[0];
        return "never said: the deadline is over";
      },
    });
    const hook = {
      name: "hook",
      async onCall([{ content }], context) {
        if (textOf(content) !== "go") return;
        await note("middleware, at once", agent.call("again", own));
      },
      async beforeModel({ messages }, context) {
        if (messages.length > 1) return;
        await later();
        await note("middleware, by its signal", agent.call("again", { ...own, signal: context.signal }));
        await note("middleware, by its context", agent.call("again", context));
      },
    };
    const model = modelOf(async function* ({ messages }) {
      if (messages.length === 1) yield { type: "tool-call", index: 0, name: "self", arguments: "{}" };
      else yield { type: "text", text: `after ${messages.length}` };
    });
    agent = await createAgent({ name: "helper", model, tools: [self], middleware: [hook], store: memoryStore() });
    const { messages } = await agent.call("go", own);
    assert.match(JSON.stringify(messages), /did not finish within 100 ms/);
    await unknown[0];
    assert.deepEqual(codes, {
      "middleware, at once": "REENTRANT",
      "middleware, by its signal": "REENTRANT",
      "middleware, by its context": "REENTRANT",
      "a tool, by its signal": "REENTRANT",
      "a tool, by nothing": "after 5",
    });
  },
);

story(
  "G-05: a tool that calls its own session gets REENTRANT at once, in every way of calling",
  async ({ createAgent, tool, memoryStore, customModel, assert }) => {
    let agent;
    const codes = {};
    const note = (name, promise) => promise.then(() => (codes[name] = "ran"), (error) => (codes[name] = error.code));
    const self = tool({
      name: "self",
      description: "calls its own session",
      inputSchema: { type: "object" },
      async execute(_, context) {
        const own = { sessionId: "s", userId: "alice" };
        const waits = [note("synchronously", agent.call("again", own)), note("by its context", agent.call("again", context))];
        waits.push(note("by a copy of its context", agent.call("again", { ...context })));
        waits.push(note("by changing", agent.clearContext(own)));
        waits.push(note("by deleting", agent.deleteSession(own)));
        await new Promise((resolve) => setImmediate(resolve));
        waits.push(note("later", agent.call("again", own)));
        waits.push(note("on another session", agent.call("hello", { sessionId: "other", userId: "alice" })));
        waits.push(note("of another user", agent.call("hello", { sessionId: "s", userId: "bob" })));
        await Promise.all(waits);
        return "done";
      },
    });
    const model = customModel({
      id: "m",
      async *generate({ messages }) {
        const asked = messages.at(-1);
        if (asked.role === "user" && asked.content[0].text === "go") {
          yield { type: "tool-call", index: 0, name: "self", arguments: "{}" };
        } else yield { type: "text", text: "hi" };
      },
    });
    agent = await createAgent({ name: "helper", model, tools: [self], store: memoryStore() });
    await agent.call("go", { sessionId: "s", userId: "alice" });
    assert.deepEqual(codes, {
      synchronously: "REENTRANT",
      "by its context": "REENTRANT",
      "by a copy of its context": "REENTRANT",
      "by changing": "REENTRANT",
      "by deleting": "REENTRANT",
      later: "REENTRANT",
      "on another session": "ran",
      "of another user": "ran",
    });
    assert.equal((await agent.call("hello", { sessionId: "s", userId: "alice" })).text, "hi");
  },
);

story(
  "interrupting a session stops its running call, keeps the text so far, and reaches no other session",
  async ({ createAgent, customModel, lines, assert }) => {
    const model = customModel({
      id: "m",
      async *generate({ messages }, { signal }) {
        yield { type: "text", text: "one " };
        if (messages.length > 1) return;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    const agent = await createAgent({ name: "helper", model });
    assert.equal(await agent.interrupt({ sessionId: "s" }), false);
    const call = agent.stream("count", { sessionId: "s" });
    for await (const event of call) {
      if (event.type === "text-delta") assert.equal(await agent.interrupt({ sessionId: "s" }, "enough"), true);
    }
    assert.equal((await call.result).reason, "interrupted");
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: count", "assistant: one ", "user: enough"]);
  },
);

story(
  "a call on a busy session can be refused or can interrupt the running call, as its option says",
  async ({ createAgent, customModel, assert }) => {
    const model = customModel({
      id: "m",
      async *generate({ messages }, { signal }) {
        yield { type: "text", text: "one " };
        if (messages.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    const agent = await createAgent({ name: "helper", model });
    const first = agent.stream("first", { sessionId: "s" });
    first.detach();
    for await (const event of first) if (event.type === "text-delta") break;
    const refused = await agent.call("second", { sessionId: "s", overlap: "reject" }).catch((error) => error);
    assert.equal(refused.code, "BUSY");
    const third = await agent.call("third", { sessionId: "s", overlap: "interrupt" });
    assert.equal((await first.result).reason, "interrupted");
    assert.equal(third.reason, "stop");
    const wrong = await agent.call("fourth", { sessionId: "s", overlap: "push" }).catch((error) => error);
    assert.equal(wrong.code, "INPUT_INVALID");
  },
);

story(
  "a shutdown saves running turns and refuses new calls, and the same question continues the turn",
  async ({ createAgent, customModel, memoryStore, lines, assert }) => {
    const store = memoryStore();
    const model = customModel({
      id: "m",
      async *generate({ messages }, { signal }) {
        yield { type: "text", text: messages.length > 1 ? "two" : "one " };
        if (messages.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    const dying = await createAgent({ name: "helper", model, store });
    const call = dying.stream("go on", { sessionId: "s" });
    for await (const event of call) {
      if (event.type !== "text-delta") continue;
      const down = dying.shutdown({ timeoutMs: 0 });
      assert.equal((await dying.call("new", { sessionId: "t" }).catch((error) => error)).code, "SHUTTING_DOWN");
      const error = await call.result.catch((error) => error);
      assert.deepEqual([error.code, error.retryable, error.partial.content[0].text], ["SHUTTING_DOWN", true, "one "]);
      await down;
      break;
    }
    assert.equal((await dying.getAgentState({ sessionId: "s" })).shutdown_interrupted, true);
    await dying.close();
    await dying.close();
    assert.equal((await dying.call("new", { sessionId: "t" }).catch((error) => error)).code, "SHUTTING_DOWN");
    const next = await createAgent({ name: "helper", model, store });
    assert.equal((await next.call("go on", { sessionId: "s" })).text, "two");
    assert.deepEqual(lines(await next.history({ sessionId: "s" })), ["user: go on", "assistant: one ", "assistant: two"]);
  },
);

story("draining waits for every call begun before it", async ({ createAgent, demoModel, assert }) => {
  const agent = await createAgent({ name: "helper", model: demoModel({ delayMs: 1 }) });
  const ended = [];
  for (const sessionId of ["a", "b"]) agent.call("hello", { sessionId }).then(() => ended.push(sessionId));
  await agent.drain();
  assert.deepEqual(ended.sort(), ["a", "b"]);
});

story(
  "a state that was read can be changed and put, once",
  async ({ createAgent, demoModel, assert }) => {
    const agent = await createAgent({ name: "helper", model: demoModel() });
    const slot = { sessionId: "s" };
    await agent.call("hello", slot);
    const state = await agent.getAgentState(slot);
    const task = { id: "t", subject: "water the plants", state: "pending" };
    await agent.putAgentState(slot, { ...state, tasks_context: { tasks: [task] } });
    assert.deepEqual((await agent.getAgentState(slot)).tasks_context.tasks, [task]);
    assert.equal((await agent.putAgentState(slot, state).catch((error) => error)).code, "SUPERSEDED");
    assert.equal((await agent.putAgentState(slot, {}).catch((error) => error)).code, "INPUT_INVALID");
    await agent.clearContext(slot);
    const cleared = await agent.getAgentState(slot);
    assert.deepEqual([cleared.context, cleared.tasks_context.tasks], [[], [task]]);
    assert.equal((await agent.history(slot)).length, 2);
  },
);

story(
  "messages can be appended, and sessions renamed and looked up",
  async ({ createAgent, demoModel, lines, assert }) => {
    const agent = await createAgent({ name: "helper", model: demoModel() });
    const slot = { sessionId: "s", userId: "alice" };
    assert.equal(await agent.session(slot), null);
    const [first] = await agent.append(slot, [
      { role: "user", content: "my name is Alice" },
      { role: "assistant", content: "hello Alice" },
    ]);
    assert.equal(typeof first.id, "string");
    assert.deepEqual(lines(await agent.history(slot)), ["user: my name is Alice", "assistant: hello Alice"]);
    await agent.renameSession(slot, "Alice");
    const { title, messages, running } = await agent.session(slot);
    assert.deepEqual({ title, messages, running }, { title: "Alice", messages: 2, running: false });
    assert.equal((await agent.renameSession({ sessionId: "nobody" }, "x").catch((error) => error)).code, "NO_SUCH_SESSION");
    assert.equal((await agent.append(slot, [{ role: "system", content: "x" }]).catch((error) => error)).code, "INPUT_INVALID");
  },
);

story(
  "calls and changes happen in the order in which they were requested",
  async ({ createAgent, demoModel, lines, assert }) => {
    const agent = await createAgent({ name: "helper", model: demoModel() });
    const slot = { sessionId: "s" };
    const done = [agent.append(slot, [{ role: "user", content: "one" }]), agent.call("two", slot)];
    done.push(agent.append(slot, [{ role: "user", content: "three" }]));
    await Promise.all(done);
    const said = lines(await agent.history(slot)).filter((line) => line.startsWith("user"));
    assert.deepEqual(said, ["user: one", "user: two", "user: three"]);
  },
);

story(
  "a session is exported as JSON, AgentScope and Markdown, and imported elsewhere",
  async ({ createAgent, demoModel, tool, lines, assert }) => {
    const clock = tool({ name: "clock", description: "time", inputSchema: { type: "object" }, execute: () => "noon ```" });
    const agent = await createAgent({ name: "helper", model: demoModel(), tools: [clock] });
    const [slot, copy, theirs] = ["s", "copy", "theirs"].map((sessionId) => ({ sessionId }));
    await agent.call("what time is it", slot);
    const info = await agent.importSession(copy, await agent.exportSession(slot));
    assert.deepEqual([info.title, info.messages], ["what time is it", 4]);
    assert.deepEqual(await agent.history(copy), await agent.history(slot));
    const reference = JSON.parse(await agent.exportSession(slot, "agentscope"));
    assert.equal(reference.context[0].role, "USER");
    await agent.importSession(theirs, JSON.stringify(reference));
    assert.deepEqual(lines(await agent.history(theirs)), lines(await agent.history(slot)));
    const text = await agent.exportSession(slot, "markdown");
    assert.match(text, /^# what time is it\n\n## User\n/);
    assert.match(text, /````\nnoon ```\n````/);
    assert.equal((await agent.importSession(slot, "{}").catch((error) => error)).code, "INPUT_INVALID");
    assert.equal((await agent.exportSession({ sessionId: "nobody" }).catch((error) => error)).code, "NO_SUCH_SESSION");
    assert.equal((await agent.exportSession(slot, "pdf").catch((error) => error)).code, "INPUT_INVALID");
  },
);

story(
  "R21: interrupting one session leaves the others running",
  async ({ createAgent, customModel, assert }) => {
    const release = [];
    const model = customModel({
      id: "m",
      async *generate(_, { signal }) {
        yield { type: "text", text: "so far" };
        await new Promise((resolve) => (release.push(resolve), signal.addEventListener("abort", resolve)));
      },
    });
    const agent = await createAgent({ name: "helper", model });
    const calls = ["a", "b"].map((sessionId) => agent.stream("go", { sessionId }));
    for (const call of calls) {
      call.detach();
      for await (const event of call) if (event.type === "text-delta") break;
    }
    assert.equal(await agent.interrupt({ sessionId: "a" }), true);
    assert.equal((await calls[0].result).reason, "interrupted");
    assert.equal((await agent.session({ sessionId: "b" })).running, true);
    release.forEach((resolve) => resolve());
    assert.equal((await calls[1].result).reason, "stop");
  },
);

story(
  "G-04, T-06, T-13: a tool's result after its deadline, or after its session was deleted, changes nothing",
  async ({ createAgent, demoModel, tool, lines, assert }) => {
    const late = [];
    const slow = tool({
      name: "clock",
      description: "time",
      inputSchema: { type: "object" },
      timeoutMs: 1,
      execute: () => new Promise((resolve) => late.push(resolve)),
    });
    const agent = await createAgent({ name: "helper", model: demoModel(), tools: [slow] });
    const reply = await agent.call("what time is it", { sessionId: "s" });
    assert.match(reply.text, /did not finish within 1 ms/);
    const before = lines(await agent.history({ sessionId: "s" }));
    const call = agent.stream("what time is it", { sessionId: "t" });
    call.detach();
    for await (const event of call) if (event.type === "tool-start") break;
    const deleted = agent.deleteSession({ sessionId: "t" });
    late.forEach((resolve) => resolve("too late"));
    await deleted;
    await call.result.catch(() => {});
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), before);
    assert.deepEqual(await agent.history({ sessionId: "t" }), []);
  },
);

story(
  "T-03: names of members that every object has, such as constructor, are neither tools nor sessions",
  async ({ createAgent, customModel, lines, assert }) => {
    const model = customModel({
      id: "m",
      async *generate({ messages }) {
        const text = messages.at(-1).content[0].text ?? "";
        if (messages.length === 1) yield { type: "tool-call", index: 0, name: text, arguments: "{}" };
        else yield { type: "text", text: JSON.stringify(messages.at(-1).content[0].output ?? "again") };
      },
    });
    const agent = await createAgent({ name: "helper", model });
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const reply = await agent.call(name, { sessionId: name, userId: name });
      assert.match(reply.text, /does not exist/);
      assert.equal((await agent.history({ sessionId: name, userId: name })).length, 4);
      assert.equal((await agent.listSessions(name)).length, 1);
    }
    assert.deepEqual(lines(await agent.history({ sessionId: "valueOf" })), []);
  },
);

story(
  "G-18: two copies of the package over one store wait for each other, and know each other's errors",
  async ({ createAgent, demoModel, memoryStore, LockgateError, lines, assert }) => {
    const { cpSync, rmSync } = await import("node:fs");
    const own = new URL("../", import.meta.resolve("lockgate"));
    const copied = new URL("../lockgate-copy/", own);
    cpSync(own, new URL("dist/", copied), { recursive: true });
    cpSync(new URL("../package.json", own), new URL("package.json", copied));
    try {
      const copy = await import(new URL("dist/entry/node.js", copied));
      const store = memoryStore();
      const agents = [
        await createAgent({ name: "helper", model: demoModel(), store }),
        await copy.createAgent({ name: "helper", model: copy.demoModel(), store }),
      ];
      const slot = { sessionId: "s" };
      await Promise.all(Array.from({ length: 10 }, (_, n) => agents[n % 2].call(`q${n}`, slot)));
      const said = lines(await agents[0].history(slot)).filter((line) => line.startsWith("user"));
      assert.deepEqual(said.sort(), Array.from({ length: 10 }, (_, n) => `user: q${n}`));
      const error = await agents[1].call("", { sessionId: "" }).catch((error) => error);
      assert.equal(LockgateError.isInstance(error), true);
    } finally {
      rmSync(copied, { recursive: true });
    }
  },
);
