// Subagents in the packed package: start, wait, background, cancel, and a result that is reported once.
import { story } from "../support/project.mjs";
import { beside, relay } from "../support/two-processes.mjs";

// R64
story(
  "R64: a model starts subagents, continues one, leaves others in the background, cancels one and waits for the rest",
  async ({ createAgent, scriptedModel, modelOf, outcomesOf, signpost, memoryStore, resultsIn, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const gate = signpost();
    const slow = modelOf(async function* (_, { signal }) {
      await Promise.race([gate.passed, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      yield { type: "text", text: "slowly" };
    });
    const worker = scriptedModel(["7 boats", "3 are red"]);
    const ids = (request) => resultsIn(request.messages).flatMap(({ output }) => textOf(output).match(/(?<=^task_id: ).*$/gm) ?? []);
    const use = (name, input) => (request) => ({ toolCalls: [{ name, input: typeof input === "function" ? input(ids(request)) : input }] });
    const later = { agent_id: "slow", task: "think", timeout_seconds: 0 };
    const model = scriptedModel([
      use("agent_spawn", { agent_id: "worker", task: "count the boats", label: "boats" }),
      use("agent_send", { agent_key: "boats", message: "how many are red?" }),
      use("agent_spawn", later),
      use("agent_spawn", later),
      use("agent_list", {}),
      use("task_list", { status_filter: "running" }),
      use("task_output", ([, , third]) => ({ task_id: third, block: false })),
      use("task_cancel", ([, , third]) => ({ task_id: third })),
      (request) => {
        gate.pass();
        return use("wait_async_results", {})(request);
      },
      use("task_output", ([, , , fourth]) => ({ task_id: fourth })),
      "All done.",
    ]);
    const subagents = [
      { name: "worker", description: "counts", model: worker },
      { name: "slow", description: "thinks", model: slow },
    ];
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents, maxIterations: 20 });
    const reply = await agent.call("go", slot);
    const told = outcomesOf(reply);
    const found = ids({ messages: reply.messages });
    assert.match(told[0], /^task_id: \w+\nstatus: completed\nagent_id: worker\nagent_key: agent:worker:\w+\nlabel: boats\n\n7 boats$/);
    assert.match(told[1], /\nlabel: boats\n\n3 are red$/);
    assert.match(told[2], /^task_id: \w+\nstatus: running\n[^]*It goes on in the background\./);
    assert.match(told[4], /- worker: counts\n- slow: thinks\n- general-purpose: [^]*\(worker, boats\): completed/);
    assert.deepEqual(told[5].split("\n"), [2, 3].map((at) => `- ${found[at]} (slow): running`));
    assert.match(told[6], /status: running/);
    assert.match(told[7], /status: cancelled/);
    assert.match(told[8], /status: completed[^]*\n\nslowly$/);
    assert.equal(told[9], told[8]);
    assert.equal(worker.requests[1].messages.length, 3, "the subagent keeps its messages");
    const [{ tools, system }] = worker.requests;
    assert.ok(tools.some(({ name }) => name === "agent_spawn") && system === "", "without own options a subagent has those of the agent");

    // A result that a tool has reported is not reported again, and lists do not contain subagents.
    const notes = (await agent.history(slot)).filter(({ name }) => name === "system");
    assert.deepEqual(notes, []);
    assert.deepEqual((await agent.listSessions("alice")).map(({ sessionId }) => sessionId), ["s"]);
    await agent.close();
  },
);

// R64
story(
  "R64: a child that exceeds its timeout continues in the background, and its result arrives once, as a message",
  async ({ createAgent, scriptedModel, modelOf, signpost, memoryStore, outcomesOf, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const gate = signpost();
    let begun = 0;
    const slow = modelOf(async function* () {
      begun += 1;
      await gate.passed;
      yield { type: "text", text: "7 boats" };
    });
    const spawn = { toolCalls: [{ name: "agent_spawn", input: { agent_id: "slow", task: "count", timeout_seconds: 0.05 } }] };
    const model = scriptedModel([spawn, "It takes a while.", "Seven.", "Still seven."]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents: [{ name: "slow", description: "thinks", model: slow }] });
    const [promoted] = outcomesOf(await agent.call("how many boats?", slot));
    assert.match(promoted, /status: running/);
    assert.match(textOf(model.requests[1].messages.at(-1)), /Tasks that run in the background:\n- \w+ \(slow\)$/, "the reminder names the task");
    gate.pass();
    await agent.drain();
    assert.equal((await agent.call("and now?", slot)).text, "Seven.");
    await agent.call("sure?", slot);
    const notes = (await agent.history(slot)).filter(({ name }) => name === "system");
    assert.equal(notes.length, 1);
    assert.deepEqual([notes[0].role, textOf(notes[0]).endsWith("status: completed\nagent_id: slow\n" + promoted.match(/agent_key: .*/)[0] + "\n\n7 boats")], ["user", true]);
    assert.ok(model.requests[2].messages.some(({ id }) => id === notes[0].id), "the message is in the model's request");
    assert.equal(begun, 1);
    await agent.close();
  },
);

// R65
story(
  "R65: the stream shows the events of subagents, and an abort of the parent ends them: every start event has an end event",
  async ({ createAgent, scriptedModel, endless, memoryStore, rejection, assert }) => {
    const { model: slow, reached } = endless();
    for (const timeout_seconds of [30, 0]) {
      const input = { agent_id: "slow", task: "count", timeout_seconds };
      const model = scriptedModel([{ toolCalls: [{ name: "agent_spawn", input }] }, { text: "and so on and on", delayMs: 60_000 }]);
      const own = timeout_seconds === 0 ? endless() : { model: slow, reached };
      const subagents = [{ name: "slow", description: "thinks", model: own.model }];
      const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents });
      const aborts = new AbortController();
      const call = agent.stream("how many boats?", { userId: "alice", sessionId: "s", signal: aborts.signal });
      own.reached.then(() => aborts.abort());
      const events = [];
      const error = await rejection((async () => {
        for await (const event of call) events.push(event);
      })());
      assert.equal(error.code, "ABORTED");
      const inner = events.filter(({ type }) => type === "subagent");
      const types = inner.map(({ event }) => event.type);
      assert.deepEqual([types[0], types.at(-1)], ["call-start", "call-end"]);
      for (const part of ["model", "text"]) {
        assert.equal(types.filter((type) => type === `${part}-start`).length, types.filter((type) => type === `${part}-end`).length, part);
      }
      const [{ taskId, agent: kind, event }] = inner;
      assert.deepEqual([kind, event.callId, event.slot.userId], ["slow", taskId, "alice"]);
      assert.equal(inner.at(-1).event.reply.reason, "interrupted");
      assert.equal(events.at(-1).type, "error");
      await agent.close();
    }
  },
);

// R65, A-12
story(
  "R65: a subagent has no more permissions than its parent: tools denied to the parent are denied to it, even in plan mode",
  async ({ createAgent, scriptedModel, tool, memoryStore, outcomesOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const seen = [];
    const write = tool({ name: "write", description: "writes", inputSchema: { type: "object" }, execute: (_, { sessionId }) => void seen.push(sessionId) });
    const spawn = { toolCalls: [{ name: "agent_spawn", input: { agent_id: "worker", task: "write" } }] };
    const writes = { toolCalls: [{ name: "write", input: {} }] };
    const worker = scriptedModel([writes, "denied", writes, "denied", writes, "written"]);
    const model = scriptedModel(["hello", spawn, "ok", spawn, "ok", spawn, "ok"]);
    const subagents = [{ name: "worker", description: "writes", model: worker }];
    const agent = await createAgent({ name: "helper", model, tools: [write], store: memoryStore(), subagents, planMode: true });
    const results = () => worker.requests.at(-1).messages.flatMap(({ content }) => content.filter(({ type }) => type === "tool_result")).map(({ state }) => state);
    await agent.call("hello", slot);

    const state = await agent.getAgentState(slot);
    const rule = { tool_name: "write", rule_content: null, behavior: "deny", source: "session" };
    await agent.putAgentState(slot, { ...state, permission_context: { ...state.permission_context, deny_rules: [rule] } });
    const [told] = outcomesOf(await agent.call("go", slot));
    assert.deepEqual(results(), ["denied"]);
    const child = { userId: "alice", sessionId: told.match(/agent_key: (.*)/)[1] };
    assert.deepEqual((await agent.getAgentState(child)).permission_context.deny_rules, [rule]);

    await agent.putAgentState(slot, { ...(await agent.getAgentState(slot)), permission_context: state.permission_context });
    await agent.enterPlanMode(slot);
    await agent.call("go", slot);
    assert.deepEqual(results(), ["denied"]);
    assert.ok(!worker.requests.at(-1).tools.some(({ name }) => name.startsWith("plan_")), "the subagent has no tool to leave plan mode");
    const shown = JSON.stringify(worker.requests.at(-1));
    assert.ok(shown.includes("the plan is made by whoever gave you the task") && !/plan_(write|exit)/.test(shown), "its instructions name no plan tool");
    await agent.exitPlanMode(slot);
    assert.deepEqual(seen, []);
    const [done] = outcomesOf(await agent.call("go", slot));
    assert.deepEqual(seen, [done.match(/agent_key: (.*)/)[1]], "a tool that is not denied runs in the subagent's session");
    await agent.close();
  },
);

story(
  "the tools for subagents refuse invalid input with messages that a model can act on",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const spawn = { agent_id: "worker", task: "count", label: "boats" };
    const script = callsOf(
      ["agent_spawn", { agent_id: "captain", task: "sail" }],
      ["agent_spawn", spawn],
      ["agent_spawn", spawn],
      ["agent_send", { agent_key: "ships", message: "sail" }],
      ["task_output", { task_id: "x" }],
      ["task_cancel", { task_id: "x" }],
      ["wait_async_results", { task_ids: ["x"] }],
      ["wait_async_results", {}],
      ["task_list", { status_filter: "running" }],
    );
    const model = scriptedModel([...script.slice(0, -1), (request) => ({ toolCalls: [{ name: "task_cancel", input: { task_id: JSON.stringify(request.messages).match(/task_id: (\w+)/)[1] } }] }), "Done."]);
    const subagents = [{ name: "worker", description: "counts", model: scriptedModel(["7"]) }];
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents, maxIterations: 20 });
    const told = outcomesOf(await agent.call("go", slot));
    assert.equal(told[0], 'error: There is no agent "captain". The agents are: worker, general-purpose.');
    assert.equal(told[2], 'error: There is an agent "boats" in this session already: agent_send goes on with it, or choose another label.');
    assert.equal(told[3], 'error: There is no agent "ships" in this session. See agent_list.');
    for (const at of [4, 5, 6]) assert.equal(told[at], 'error: There is no task "x" in this session. See task_list.');
    assert.equal(told[7], "error: There is nothing to wait for: you have heard of the end of every task.");
    assert.equal(told[8], "There are no such tasks in this session.");
    assert.match(told[9], /^error: Task \w+ has ended already: completed\.$/);
    await agent.close();
  },
);

story(
  "a model that calls the subagent tools with wrong arguments gets an error that names them",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const wrong = [
      ["agent_spawn", {}, "agent_id"],
      ["agent_spawn", { agent_id: "worker", task: "" }, "task"],
      ["agent_spawn", { agent_id: "worker", task: "x", timeout_seconds: -1 }, "timeout_seconds"],
      ["agent_send", { message: "x" }, "agent_key"],
      ["agent_send", { agent_key: "x", message: 7 }, "message"],
      ["task_output", { task_id: "x", block: "no" }, "block"],
      ["task_list", { status_filter: "begun" }, "status_filter"],
      ["task_cancel", {}, "task_id"],
      ["wait_async_results", { task_ids: "x" }, "task_ids"],
      ["wait_async_results", { timeout_seconds: 601 }, "timeout_seconds"],
      ["agent_list", "x", "object"],
    ];
    const model = scriptedModel(callsOf(...wrong));
    const worker = scriptedModel([]);
    const subagents = [{ name: "worker", description: "counts", model: worker }];
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents, maxIterations: 20 });
    const told = outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" }));
    for (const [at, [tool, , place]] of wrong.entries()) {
      assert.match(told[at], /^error: The arguments/, tool);
      assert.ok(told[at].includes(place), `${tool}: ${told[at]}`);
    }
    assert.equal(worker.requests.length, 0);
    await agent.close();
  },
);

// R64
relay(
  "R64: after a restart of the process each finished task is reported once and each cut-off task as lost, and agents keep their memory",
  async ({ createAgent, scriptedModel, modelOf, signpost, turns }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const [gate, hanging] = [signpost(), signpost()];
    const worker = modelOf(async function* ({ messages }, { signal }) {
      if (JSON.stringify(messages.at(-1).content).includes("hang")) {
        hanging.pass();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return;
      }
      await gate.passed;
      yield { type: "text", text: "7 boats" };
    });
    const spawn = (task, label) => ({ name: "agent_spawn", id: label, input: { agent_id: "worker", task, label, timeout_seconds: 0 } });
    const model = scriptedModel([{ toolCalls: [spawn("count", "boats"), spawn("hang", "hook")] }, "Begun."]);
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), subagents: [{ name: "worker", description: "counts", model: worker }] });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    await hanging.passed;
    gate.pass();
    await turns(50);
    // The subagent that hangs is stopped by a shutdown with a timeout.
    await agent.shutdown({ timeoutMs: 200 });
    await agent.close();
  },
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, textOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const worker = scriptedModel(["3 are red"]);
    const calls = [
      ["agent_list", {}],
      ["task_list", {}],
      ["agent_send", { agent_key: "boats", message: "how many are red?" }],
      ["agent_spawn", { agent_id: "worker", task: "x", label: "hook" }],
      ["wait_async_results", {}],
    ];
    const of = (name) => (request) => ({ toolCalls: [{ name, input: { task_id: JSON.stringify(request.messages).match(/task_id: (\w+)/)[1] } }] });
    const model = scriptedModel([...callsOf(...calls).slice(0, -1), of("task_output"), of("task_cancel"), "Done.", "Again."]);
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), maxIterations: 20, subagents: [{ name: "worker", description: "counts", model: worker }] });
    const told = outcomesOf(await agent.call("and?", slot));
    const notes = async () => (await agent.history(slot)).filter(({ name }) => name === "system").map(textOf);
    const first = (await notes()).sort((one, other) => one.indexOf("label: boats") < other.indexOf("label: boats") ? 1 : -1);
    assert.equal(first.length, 2);
    assert.match(first[0], /status: completed[^]*label: boats\n\n7 boats$/);
    assert.match(first[1], /status: lost[^]*label: hook\n\nIt was cut off when its process ended/);
    assert.match(told[0], /\(worker, hook\): lost/);
    assert.match(told[1], /\(worker, boats\): completed[^]*\(worker, hook\): lost|\(worker, hook\): lost[^]*\(worker, boats\): completed/);
    assert.match(told[2], /3 are red$/);
    assert.equal(worker.requests[0].messages.length, 3, "the subagent keeps its messages after the restart");
    assert.match(told[3], /^error: There is an agent "hook" in this session already/);
    assert.equal(told[4], "error: There is nothing to wait for: you have heard of the end of every task.");
    assert.match(told[5], /status: (completed|lost)/);
    assert.match(told[6], /^error: Task \w+ has ended already/);
    await agent.call("again?", slot);
    assert.equal((await notes()).length, 2, "a task was reported twice");
    assert.equal(worker.requests.length, 1, "a subagent ran twice");
    await agent.close();
  },
);

// R64
story(
  "R64: subagents survive a compaction of their parent: the parent is reminded of them, finds them and gets each result once",
  async ({ createAgent, scriptedModel, modelOf, outcomesOf, signpost, memoryStore, resultsIn, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const gate = signpost();
    const slow = modelOf(async function* (_, { signal }) {
      await Promise.race([gate.passed, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      yield { type: "text", text: "slowly" };
    });
    const spawn = (label, agent_id, timeout_seconds) => ({ name: "agent_spawn", id: label, input: { agent_id, task: "count", label, timeout_seconds } });
    const ids = (request) => [...textOf(request.messages.at(-1)).matchAll(/^- (\w+) \(slow, (\w+)\)$/gm)];
    const of = (name, label) => (request) => ({ toolCalls: [{ name, input: { task_id: ids(request).find(([, , it]) => it === label)[1] } }] });
    const plain = (name, input) => ({ toolCalls: [{ name, input }] });
    const model = scriptedModel([
      { toolCalls: [spawn("boats", "worker", 30), spawn("one", "slow", 0), spawn("two", "slow", 0)] },
      "Begun.",
      "Yes.",
      plain("agent_list", {}),
      plain("task_list", {}),
      plain("agent_send", { agent_key: "boats", message: "how many are red?" }),
      plain("agent_spawn", { agent_id: "worker", task: "x", label: "one" }),
      of("task_cancel", "one"),
      (request) => {
        gate.pass();
        return of("task_output", "two")(request);
      },
      plain("wait_async_results", {}),
      "Done.",
    ]);
    const worker = scriptedModel(["7 boats", "3 are red"]);
    const subagents = [{ name: "worker", description: "counts", model: worker }, { name: "slow", description: "thinks", model: slow }];
    const compaction = { model: scriptedModel(["They talked."]), keepMessages: 1 };
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents, compaction, maxIterations: 20 });
    await agent.call("words ".repeat(400), slot);
    await agent.call("is it?", slot);
    const report = await agent.compact(slot);
    assert.ok(report.messagesAfter < report.messagesBefore);
    const told = outcomesOf(await agent.call("go on", slot));
    const asked = model.requests[3].messages;
    assert.ok(textOf(asked[0]).includes("They talked.") && resultsIn(asked).length === 0, "the messages about them are gone from the context");
    assert.match(textOf(asked.at(-1)), /Tasks that run in the background:\n- \w+ \(slow, one\)\n- \w+ \(slow, two\)$/);
    assert.match(told[0], /\(worker, boats\): completed/);
    assert.equal(told[1].split("\n").length, 3);
    assert.match(told[2], /3 are red$/);
    assert.match(told[3], /^error: There is an agent "one" in this session already/);
    assert.match(told[4], /status: cancelled/);
    assert.match(told[5], /status: completed[^]*slowly$/);
    assert.equal(told[6], "error: There is nothing to wait for: you have heard of the end of every task.");
    await agent.close();
  },
);

// R64
beside("R64: a second process sees the running subagents of the first, cannot cancel them, reports none as lost, and gets each result once", {
  async here({ createAgent, scriptedModel, customModel, fileStore }, folder) {
    let pass;
    const gate = new Promise((resolve) => (pass = resolve));
    const generate = async function* () {
      await gate;
      yield { type: "text", text: "7 boats" };
    };
    const input = { agent_id: "slow", task: "count", label: "boats", timeout_seconds: 0 };
    const model = scriptedModel([{ toolCalls: [{ name: "agent_spawn", input }] }, "Begun.", "Seven."]);
    const subagents = [{ name: "slow", description: "thinks", model: customModel({ id: "slow", generate }) }];
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), subagents });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    return Object.assign(agent, { pass });
  },
  there: async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const of = (name, more) => (request) => ({ toolCalls: [{ name, input: { task_id: JSON.stringify(request.messages).match(/task_id: (\w+)/)[1], ...more } }] });
    const calls = callsOf(["agent_list", {}], ["task_list", {}], ["wait_async_results", { timeout_seconds: 0 }], ["agent_spawn", { agent_id: "slow", task: "x", label: "boats" }]);
    const model = scriptedModel([...calls.slice(0, -1), of("task_output", { block: false }), of("task_cancel", {}), "Done."]);
    const worker = scriptedModel([]);
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), maxIterations: 20, subagents: [{ name: "slow", description: "thinks", model: worker }] });
    const told = outcomesOf(await agent.call("look", { userId: "alice", sessionId: "s" }));
    assert.match(told[0], /\(slow, boats\): running/);
    assert.match(told[1], /^- \w+ \(slow, boats\): running$/);
    assert.match(told[2], /status: running/);
    assert.match(told[3], /^error: There is an agent "boats" in this session already/);
    assert.match(told[4], /status: running/);
    assert.match(told[5], /^error: Task \w+ runs in another process, which alone can stop it\.$/);
    assert.equal(worker.requests.length, 0);
    await agent.close();
  },
  async back({ assert, textOf }, agent) {
    agent.pass();
    await agent.drain();
    await agent.call("and?", { userId: "alice", sessionId: "s" });
    const notes = (await agent.history({ userId: "alice", sessionId: "s" })).filter(({ name }) => name === "system");
    assert.equal(notes.length, 1);
    assert.match(textOf(notes[0]), /status: completed[^]*7 boats$/);
  },
});

story(
  "the description of an agent is the description of its general-purpose subagent",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const listed = async (options) => {
      const model = scriptedModel(callsOf(["agent_list", {}]));
      const agent = await createAgent({ name: "helper", model, store: memoryStore(), subagents: [], ...options });
      return outcomesOf(await agent.call("go", { sessionId: "s" }))[0];
    };
    assert.match(await listed({ description: "counts boats" }), /- general-purpose: counts boats$/m);
    assert.match(await listed({}), /- general-purpose: does what you do, in a conversation of its own$/m);
  },
);

story(
  "subagents described in the workspace, with instructions and tools, replace those of the options",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const spawns = callsOf(["agent_spawn", { agent_id: "reader", task: "read" }], ["agent_spawn", { agent_id: "mute", task: "read" }], ["agent_list", {}]);
    const model = scriptedModel([spawns[0], "I have read.", ...spawns.slice(1)]);
    const templates = {
      "subagents/reader.md": "---\ndescription: reads\ntools: read_file, list_files\nmaxIterations: 2\n---\nYou only read.\n",
      "subagents/mute.md": "says nothing of itself",
      "subagents/deep/er.md": "---\ndescription: too deep\n---\n",
    };
    const subagents = [{ name: "reader", description: "is not this one" }];
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), workspace: { templates }, subagents, systemPrompt: "You lead." });
    const told = outcomesOf(await agent.call("go", slot));
    assert.match(told[0], /I have read\.$/);
    assert.equal(told[1], 'error: There is no agent "mute". The agents are: reader, general-purpose.');
    assert.match(told[2], /^Agents that you can spawn:\n- reader: reads\n- general-purpose: /);
    const { system, tools } = model.requests[1];
    assert.equal(system, "You only read.");
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["list_files", "read_file"]);
    assert.ok(model.requests[0].system.startsWith("You lead."));
    await agent.close();
  },
);

story(
  "tools and middleware of a subagent get its own session and state, and the attributes of its parent",
  async ({ createAgent, scriptedModel, tool, memoryStore, outcomesOf, assert }) => {
    const seen = [];
    const look = tool({
      name: "look",
      description: "looks",
      inputSchema: { type: "object" },
      execute(_, context) {
        const { sessionId, userId, callId, attributes, state } = context;
        context.emit("looking");
        seen.push({ sessionId, userId, callId, attributes, messages: state.context.length, of: state.session_id });
        return "seen";
      },
    });
    const hooked = [];
    const middleware = [{ name: "watch", beforeModel: (_, { sessionId }) => void hooked.push(sessionId) }];
    const worker = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "me"]);
    const model = scriptedModel([{ toolCalls: [{ name: "agent_spawn", input: { agent_id: "worker", task: "look" } }] }, "ok"]);
    const subagents = [{ name: "worker", description: "looks", model: worker, systemPrompt: "You look.", maxIterations: 3 }];
    const agent = await createAgent({ name: "helper", model, tools: [look], middleware, store: memoryStore(), subagents });
    const reply = await agent.call("go", { userId: "alice", sessionId: "s", attributes: { key: 7 } });
    const [told] = outcomesOf(reply);
    const key = told.match(/agent_key: (.*)/)[1];
    assert.deepEqual(seen, [{ sessionId: key, userId: "alice", callId: told.match(/task_id: (.*)/)[1], attributes: { key: 7 }, messages: 2, of: key }]);
    assert.deepEqual(hooked, ["s", key, key, "s"]);
    assert.equal(worker.requests[0].system, "You look.");
    await agent.close();
  },
);

story(
  "deleting a session deletes its children and their tasks, and an agent without subagents has none of their tools",
  async ({ createAgent, scriptedModel, memoryStore, endless, refusal, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const store = memoryStore();
    const { model: slow, reached } = endless();
    const spawn = (agent_id, timeout_seconds) => ({ name: "agent_spawn", id: agent_id, input: { agent_id, task: "x", timeout_seconds } });
    const model = scriptedModel([{ toolCalls: [spawn("worker", 30), spawn("slow", 0)] }, "ok"]);
    const subagents = [{ name: "worker", description: "works", model: scriptedModel(["done"]) }, { name: "slow", description: "thinks", model: slow }];
    const agent = await createAgent({ name: "helper", model, store, subagents });
    await agent.call("go", slot);
    await reached;
    const keys = async () => (await store.list("")).map(({ key }) => key);
    assert.equal((await keys()).filter((key) => key.includes("/task/")).length, 2);
    await agent.deleteSession(slot);
    await agent.drain();
    const left = await keys();
    assert.equal(left.length, 3, left.join("\n"));
    assert.ok(left.every((key) => key.endsWith("/head")), "three tombstones");
    await agent.close();

    const plain = scriptedModel(["hello"]);
    const without = await createAgent({ name: "helper", model: plain, store: memoryStore(), workspace: true });
    await without.call("hello", slot);
    assert.ok(!plain.requests[0].tools.some(({ name }) => /^(agent|task|wait)_/.test(name)));
    await without.close();

    const wrong = async (subagents) => (await refusal(() => createAgent({ name: "helper", model: plain, store: memoryStore(), subagents }))).message;
    assert.equal(await wrong({}), "subagents is not a list");
    assert.equal(await wrong([{ name: "a b", description: "x" }]), "subagents[0].name is not 1 to 64 letters, digits, _ or -");
    assert.equal(await wrong([{ name: "a", description: "x" }, { name: "a", description: "x" }]), 'two subagents are named "a"');
    assert.match(await wrong([{ name: "a", description: "x", tool: [] }]), /no member of subagents\[0\] "tool"/);
    assert.match(await wrong([{ name: "a" }]), /subagents\[0\]\.description/);
    assert.match(await wrong([{ name: "a", description: "x", model: {} }]), /subagents\[0\]\.model is not a model/);
  },
);
