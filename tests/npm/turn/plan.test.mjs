// Plan mode in the packed package: the tools that run in plan mode, how it ends, and that it survives compaction and restarts.
import { story } from "../support/project.mjs";
import { beside, relay } from "../support/two-processes.mjs";

// R45
story(
  "R45: a model plans, is denied tools that may change things, and carries out the plan after a person approves it",
  async ({ createAgent, scriptedModel, outcomesOf, memoryStore, readAll, tool, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const object = { type: "object" };
    const look = tool({ name: "look", description: "looks", inputSchema: object, readOnly: true, execute: () => "seen" });
    const act = tool({ name: "act", description: "acts", inputSchema: object, execute: () => "acted" });
    const calls = (...all) => ({ toolCalls: all.map(([name, input], at) => ({ name, input, id: `${name}-${at}` })) });
    const model = scriptedModel([
      calls(["plan_enter", {}], ["act", {}]),
      calls(["look", {}], ["act", {}], ["write_file", { path: "a", content: "x" }]),
      calls(["plan_write", { content: "1. act" }]),
      calls(["plan_exit", { summary: "I act." }]),
      calls(["act", {}]),
      "Done.",
    ]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), workspace: true, planMode: true, taskList: true, tools: [look, act] });
    const events = await readAll(agent.stream("go", slot));
    const { reply } = events.at(-1);
    const denied = (name) => `denied: This call was not allowed: plan mode is on, and ${name} may change things; look around with tools that only read, write the plan with plan_write, and call plan_exit to have it approved.`;
    assert.deepEqual(outcomesOf(reply), [
      "Plan mode is on. Write the plan to plans/PLAN.md with plan_write, then call plan_exit.",
      denied("act"), "seen", denied("act"), denied("write_file"), "Wrote plans/PLAN.md.",
    ]);
    assert.deepEqual([reply.reason, reply.asks.length], ["asking", 1]);
    const [{ kind, name, input, reason, toolCallId }] = reply.asks;
    assert.deepEqual([kind, name, input, reason], ["approval", "plan_exit", { summary: "I act." }, "the plan in plans/PLAN.md is to be carried out"]);
    assert.equal(await agent.files.read("alice", "plans/PLAN.md"), "1. act");

    const approved = await readAll(agent.confirm(slot, [{ toolCallId, approve: true }]));
    const [exit, acted] = outcomesOf(approved.at(-1).reply);
    assert.deepEqual([exit, acted], ["The plan in plans/PLAN.md is approved and plan mode is off. Carry it out, step by step.", "acted"]);
    const plans = [...events, ...approved].filter(({ type }) => type === "plan").map(({ plan }) => plan);
    const current_plan_file = "plans/PLAN.md";
    assert.deepEqual(plans, [{ plan_active: true, current_plan_file }, { plan_active: false, current_plan_file }]);
    assert.deepEqual((await agent.getAgentState(slot)).plan_mode_context, { plan_active: false, current_plan_file });

    const banners = model.requests.map(({ system }) => system.split(".")[0]);
    assert.deepEqual(banners, ["", ...Array(3).fill("Plan mode is on"), ...Array(2).fill("A plan was made in plans/PLAN")]);
    const reminded = model.requests.map(({ messages }) => textOf(messages.at(-1)).includes("Plan mode is on: change nothing."));
    assert.deepEqual(reminded, [false, true, true, true, false, false]);
    model.finished();
    await agent.close();
  },
);

// R45
story(
  "R45: leaving plan mode is refused without a plan, when it is off, and when a person says no",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const script = callsOf(["plan_exit", {}], ["plan_enter", {}], ["plan_exit", {}], ["plan_write", { content: " " }], ["plan_write", { content: "1. act" }], ["plan_exit", {}]);
    const model = scriptedModel([...script.slice(0, 6), "I will think again."]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), planMode: true, permissions: { mode: "bypass" } });
    const reply = await agent.call("go", slot);
    const [off, , early, empty] = outcomesOf(reply);
    assert.match(off, /^denied: .*plan mode is off already/);
    assert.match(early, /^denied: .*there is no plan yet: write it with plan_write/);
    assert.equal(empty, "error: The plan is empty. What was written before is as it was.");
    assert.equal(reply.reason, "asking", "a person is asked, even in a session that allows everything else");
    const no = await agent.confirm(slot, [{ toolCallId: reply.asks[0].toolCallId, approve: false, reason: "too bold" }]).result;
    assert.match(outcomesOf(no)[0], /^denied: .*too bold/);
    assert.equal((await agent.getAgentState(slot)).plan_mode_context.plan_active, true);
    await agent.close();
  },
);

story(
  "a model that calls the plan tools with wrong arguments gets an error that names them",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel(callsOf(["plan_enter", "now"], ["plan_write", {}], ["plan_write", { content: 1 }], ["plan_exit", { summary: ["a"] }]));
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), planMode: true });
    await agent.enterPlanMode(slot);
    await agent.files.write("alice", "plans/PLAN.md", "1. look");
    const reply = await agent.call("go", slot);
    const told = outcomesOf(reply);
    for (const [at, place] of ["object", "content", "content", "summary"].entries()) {
      assert.match(told[at], /^error: The arguments (do not fit what the tool takes|are not a JSON object)/);
      assert.ok(told[at].includes(place), told[at]);
    }
    assert.deepEqual([reply.asks, await agent.files.read("alice", "plans/PLAN.md")], [[], "1. look"]);
    await agent.close();
  },
);

// R45
relay(
  "R45: after each restart of the process a session is still in plan mode, still waits for its answer, and then acts",
  async ({ createAgent, scriptedModel, callsOf }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const agent = await createAgent({ name: "helper", model: scriptedModel(callsOf(["plan_enter", {}])), store: fileStore(folder), workspace: true, planMode: true });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    await agent.close();
  },
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const script = callsOf(["write_file", { path: "a", content: "x" }], ["plan_exit", {}], ["plan_write", { content: "1. act" }], ["plan_exit", {}]);
    const model = scriptedModel(script.slice(0, 4));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), workspace: true, planMode: true });
    const reply = await agent.call("go on", { userId: "alice", sessionId: "s" });
    const [write, early, wrote] = outcomesOf(reply);
    assert.match(write, /^denied: .*plan mode is on, and write_file may change things/);
    assert.match(early, /^denied: .*there is no plan yet/);
    assert.equal(wrote, "Wrote plans/PLAN.md.");
    assert.ok(model.requests[0].system.startsWith("Plan mode is on."));
    await agent.close();
    return reply.asks[0].toolCallId;
  },
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder, told }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel(callsOf(["write_file", { path: "a", content: "x" }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), workspace: true, planMode: true });
    assert.deepEqual((await agent.asks(slot)).map(({ toolCallId, name }) => [toolCallId, name]), [[told, "plan_exit"]]);
    const [exit, wrote] = outcomesOf(await agent.confirm(slot, [{ toolCallId: told, approve: true }]).result);
    assert.match(exit, /^The plan in plans\/PLAN.md is approved/);
    assert.equal(wrote, "Wrote a.");
    await agent.enterPlanMode(slot);
    await agent.close();
  },
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel(callsOf(["write_file", { path: "b", content: "x" }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), workspace: true, planMode: true });
    assert.match(outcomesOf(await agent.call("go", slot))[0], /^denied: .*plan mode is on/);
    await agent.exitPlanMode(slot);
    await agent.close();
  },
);

story(
  "after a compaction plan mode still has its instructions, denials, file and plan_exit",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const after = callsOf(["plan_enter", {}], ["write_file", { path: "a", content: "x" }], ["read_file", { path: "plans/PLAN.md" }], ["plan_write", { content: "2. act" }], ["plan_exit", {}]);
    const model = scriptedModel([...callsOf(["plan_enter", {}], ["plan_write", { content: "1. look" }]), "Hm.", ...after.slice(0, 5), "Done."]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), workspace: true, planMode: true, compaction: { model: scriptedModel(["They talked.", "They talked more."]) } });
    await agent.call("words ".repeat(400), slot);
    await agent.call("hm", slot);
    const before = (await agent.getAgentState(slot)).plan_mode_context;
    await agent.compact(slot);
    assert.deepEqual((await agent.getAgentState(slot)).plan_mode_context, before);
    const reply = await agent.call("go on", slot);
    const asked = model.requests[4];
    assert.ok(asked.system.startsWith("Plan mode is on.") && textOf(asked.messages[0]).includes("They talked."));
    assert.ok(textOf(asked.messages.at(-1)).includes("Plan mode is on: change nothing."));
    const [again, write, read, wrote] = outcomesOf(reply);
    assert.match(again, /^Plan mode is on\./);
    assert.match(write, /^denied: .*plan mode is on, and write_file may change things/);
    assert.deepEqual([read, wrote, reply.reason], ["1. look", "Wrote plans/PLAN.md.", "asking"]);
    const done = await agent.confirm(slot, [{ toolCallId: reply.asks[0].toolCallId, approve: true }]).result;
    assert.equal(done.text, "Done.");
    await agent.enterPlanMode(slot);
    await agent.compact(slot);
    assert.equal((await agent.getAgentState(slot)).plan_mode_context.plan_active, true);
    await agent.exitPlanMode(slot);
    assert.equal((await agent.getAgentState(slot)).plan_mode_context.plan_active, false);
    await agent.close();
  },
);

beside("a second process sees that a session plans and what it asks, and the first that the plan was approved there", {
  async here({ createAgent, scriptedModel, fileStore }, folder) {
    const calls = [["plan_enter", {}], ["plan_write", { content: "1. act" }], ["plan_exit", {}]];
    const model = scriptedModel(calls.map(([name, input]) => ({ toolCalls: [{ name, input, id: name }] })));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), workspace: true, planMode: true });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    return agent;
  },
  there: async ({ createAgent, scriptedModel, rejection, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const agent = await createAgent({ name: "helper", model: scriptedModel(["Done."]), store: fileStore(folder), workspace: true, planMode: true });
    assert.equal((await agent.getAgentState(slot)).plan_mode_context.plan_active, true);
    assert.equal(await agent.files.read("alice", "plans/PLAN.md"), "1. act");
    assert.equal((await rejection(agent.exitPlanMode(slot))).code, "PENDING_TOOLS");
    const [{ toolCallId }] = await agent.asks(slot);
    const { text } = await agent.confirm(slot, [{ toolCallId, approve: true }]).result;
    await agent.close();
    return text;
  },
  async back({ assert }, agent, text) {
    const slot = { userId: "alice", sessionId: "s" };
    assert.equal(text, "Done.");
    assert.deepEqual([await agent.asks(slot), (await agent.getAgentState(slot)).plan_mode_context.plan_active], [[], false]);
    await agent.enterPlanMode(slot);
    assert.equal((await agent.getAgentState(slot)).plan_mode_context.plan_active, true);
  },
});

// R45
story(
  "R45: the host switches plan mode without a question, and an agent without plan mode refuses",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, tool, rejection, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const act = tool({ name: "act", description: "acts", inputSchema: { type: "object" }, execute: () => "acted" });
    const build = tool({ name: "build", description: "builds", inputSchema: { type: "object" }, execute: () => "built" });
    const store = memoryStore();
    const model = scriptedModel([...callsOf(["act", {}], ["build", {}], ["plan_write", { content: "1. act" }]), ...callsOf(["act", {}])]);
    const planMode = { directory: "/my/plans/", extraTools: ["build"] };
    const agent = await createAgent({ name: "helper", model, store, planMode, tools: [act, build] });
    await agent.enterPlanMode(slot);
    await agent.enterPlanMode(slot);
    const current_plan_file = "my/plans/PLAN.md";
    assert.deepEqual((await agent.getAgentState(slot)).plan_mode_context, { plan_active: true, current_plan_file });
    const [denied, built, wrote] = outcomesOf(await agent.call("go", slot));
    assert.match(denied, /^denied: .*plan mode is on, and act may change things/);
    assert.deepEqual([built, wrote], ["built", "Wrote my/plans/PLAN.md."]);
    await agent.exitPlanMode(slot);
    assert.deepEqual(outcomesOf(await agent.call("go", slot)), ["acted"]);
    const plain = await createAgent({ name: "helper", model: scriptedModel([]), store });
    const error = await rejection(plain.enterPlanMode(slot));
    assert.deepEqual([error.code, error.message], ["OPTIONS", "the agent has no plan mode"]);
    for (const wrong of [{ directory: "../out" }, { extraTools: ["fly"] }, { folder: "a" }, "yes"]) {
      const refused = await rejection(createAgent({ name: "helper", model: scriptedModel([]), store, planMode: wrong }));
      assert.equal(refused.code, "OPTIONS");
    }
    await agent.close();
    await plain.close();
  },
);
