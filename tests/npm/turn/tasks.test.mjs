// The agent's task list in the packed package: written, refused, sent to the model, and kept.
import { story } from "../support/project.mjs";
import { beside, relay } from "../support/two-processes.mjs";

// R46
story(
  "R46: a model keeps a list of tasks, sees it at the end of every request, and listeners see its changes",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, readAll, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const first = [{ content: "look", status: "in_progress" }, { content: "mend", priority: "high" }];
    const second = [{ content: "look", status: "completed" }, { content: "mend", priority: "high" }];
    const model = scriptedModel([...callsOf(["todo_write", { todos: first }], ["todo_write", { todos: second }]), "Again."]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), taskList: true });
    const events = await readAll(agent.stream("go", slot));
    const lists = events.filter(({ type }) => type === "tasks").map(({ tasks }) => tasks);
    assert.deepEqual(lists.map((tasks) => tasks.map(({ subject, state }) => `${subject} ${state}`)), [
      ["look in_progress", "mend pending"],
      ["look completed", "mend pending"],
    ]);
    assert.deepEqual(lists[0].map(({ id }) => id), lists[1].map(({ id }) => id));
    assert.deepEqual(lists[1][1], { id: lists[0][1].id, subject: "mend", state: "pending", priority: "high" });
    const { reply } = events.at(-1);
    assert.deepEqual(outcomesOf(reply), ["[~] look\n[ ] mend (high)", "[x] look\n[ ] mend (high)"]);
    assert.deepEqual((await agent.getAgentState(slot)).tasks_context, { tasks: lists[1] });

    await agent.call("and now?", slot);
    const ends = model.requests.map(({ messages }) => messages.at(-1));
    assert.equal(textOf(ends[0]), "go");
    for (const [at, list] of [[1, "[~] look\n[ ] mend (high)"], [2, "[x] look\n[ ] mend (high)"], [3, "[x] look\n[ ] mend (high)"]]) {
      assert.equal(ends[at].role, "user");
      assert.ok(textOf(ends[at]).endsWith(list), textOf(ends[at]));
    }
    // Earlier messages stay the same in later requests, except for the reminder at the end.
    for (const [at, { messages }] of model.requests.entries()) {
      const before = model.requests[at - 1]?.messages ?? [];
      const said = before.filter(({ metadata }) => metadata?.reminder !== true);
      const content = (list) => list.map(({ id, content }) => ({ id, content: content.filter(({ type }) => type === "text") }));
      assert.deepEqual(content(messages.slice(0, said.length)), content(said));
    }
    const kept = JSON.stringify([await agent.history(slot), (await agent.getAgentState(slot)).context]);
    assert.ok(!kept.includes("reminder"), kept);
    const { parts, tokens } = await agent.inspect(slot);
    assert.equal(parts.at(-1).kind, "reminder");
    assert.equal(tokens, parts.reduce((sum, part) => sum + part.tokens, 0));
    await agent.close();
  },
);

// R46
story(
  "R46: an invalid task list is refused with a reason, and the old list stays",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const two = [{ content: "a", status: "in_progress" }, { content: "b", status: "in_progress" }];
    const model = scriptedModel(
      callsOf(["todo_write", { todos: [{ content: "keep" }] }], ["todo_write", { todos: two }], ["todo_write", { todos: [{ content: "\t" }] }]),
    );
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), taskList: true });
    assert.deepEqual(outcomesOf(await agent.call("go", slot)), [
      "[ ] keep",
      "error: 2 tasks are in progress, and one at most may be. The list is as it was.",
      "error: todos[0] has no content. The list is as it was.",
    ]);
    const { tasks } = (await agent.getAgentState(slot)).tasks_context;
    assert.deepEqual(tasks.map(({ subject }) => subject), ["keep"]);
    await agent.close();
  },
);

// R46
story(
  "R46: a model that calls todo_write with wrong arguments gets an error that names them",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const wrong = [{}, { todos: "look" }, { todos: [{ status: "pending" }] }, { todos: [{ content: "a", status: "begun" }] }, { todos: [{ content: "a", priority: 1 }] }];
    const model = scriptedModel(callsOf(...wrong.map((input) => ["todo_write", input])));
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), taskList: true });
    const told = outcomesOf(await agent.call("go", slot));
    const places = ["todos", "todos", "content", "status", "priority"];
    for (const [at, place] of places.entries()) {
      assert.match(told[at], /^error: The arguments do not fit what the tool takes/);
      assert.ok(told[at].includes(place), told[at]);
    }
    assert.deepEqual((await agent.getAgentState(slot)).tasks_context, { tasks: [] });
    await agent.close();
  },
);

// R46
relay(
  "R46: after a restart of the process the tasks keep their ids, and the model gets them",
  async ({ createAgent, scriptedModel, callsOf }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel(callsOf(["todo_write", { todos: [{ content: "look" }, { content: "mend" }] }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), taskList: true });
    await agent.call("go", slot);
    const { tasks } = (await agent.getAgentState(slot)).tasks_context;
    await agent.close();
    return tasks;
  },
  async ({ createAgent, scriptedModel, callsOf, textOf, assert }, { folder, told }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const todos = [{ content: "mend", status: "in_progress" }, { content: "two", status: "in_progress" }];
    const model = scriptedModel(callsOf(["todo_write", { todos }], ["todo_write", { todos: todos.slice(0, 1) }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), taskList: true });
    assert.deepEqual((await agent.getAgentState(slot)).tasks_context.tasks, told);
    await agent.call("go on", slot);
    assert.ok(textOf(model.requests[0].messages.at(-1)).endsWith("[ ] look\n[ ] mend"));
    assert.ok(textOf(model.requests[1].messages.at(-1)).endsWith("[ ] look\n[ ] mend"), "a refused list changes nothing");
    const [only, ...more] = (await agent.getAgentState(slot)).tasks_context.tasks;
    assert.deepEqual([only.id, only.state, more], [told[1].id, "in_progress", []]);
    await agent.close();
  },
);

story(
  "after a compaction the tasks are kept, and the model still gets them",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel([
      ...callsOf(["todo_write", { todos: [{ content: "look", status: "in_progress" }] }]),
      "Hm.",
      ...callsOf(["todo_write", { todos: [{ content: "look", status: "completed" }, { content: "" }] }], ["todo_write", { todos: [{ content: "look", status: "completed" }] }]),
    ]);
    const compaction = { model: scriptedModel(["They talked."]) };
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), taskList: true, compaction });
    await agent.call("words ".repeat(400), slot);
    await agent.call("hm", slot);
    const before = (await agent.getAgentState(slot)).tasks_context;
    const report = await agent.compact(slot);
    assert.ok(report.messagesAfter < report.messagesBefore);
    assert.deepEqual((await agent.getAgentState(slot)).tasks_context, before);
    const told = outcomesOf(await agent.call("go on", slot));
    const asked = model.requests[3].messages;
    assert.ok(textOf(asked[0]).includes("They talked.") && textOf(asked.at(-1)).endsWith("[~] look"));
    assert.deepEqual(told, ["error: todos[1] has no content. The list is as it was.", "[x] look"]);
    const [task] = (await agent.getAgentState(slot)).tasks_context.tasks;
    assert.deepEqual([task.id, task.state], [before.tasks[0].id, "completed"]);
    await agent.close();
  },
);

beside("a second process sees the tasks, and the first sees what the second has made of them", {
  async here({ createAgent, scriptedModel, fileStore }, folder) {
    const input = { todos: [{ content: "look" }] };
    const model = scriptedModel([{ toolCalls: [{ name: "todo_write", input }] }, "Done.", "Seen."]);
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), taskList: true });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    return Object.assign(agent, { model });
  },
  there: async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const model = scriptedModel(callsOf(["todo_write", { todos: [{ content: "look", status: "completed" }] }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), taskList: true });
    const before = (await agent.getAgentState(slot)).tasks_context.tasks;
    assert.deepEqual(outcomesOf(await agent.call("done?", slot)), ["[x] look"]);
    await agent.close();
    return before;
  },
  async back({ assert, textOf }, agent, [before]) {
    const slot = { userId: "alice", sessionId: "s" };
    const [task] = (await agent.getAgentState(slot)).tasks_context.tasks;
    assert.deepEqual(task, { ...before, state: "completed" });
    await agent.call("and?", slot);
    assert.ok(textOf(agent.model.requests[2].messages.at(-1)).endsWith("[x] look"));
  },
});

// R46
story(
  "R46: tools and middleware see the conversation without the reminder, even after the model has seen it",
  async ({ createAgent, scriptedModel, callsOf, memoryStore, tool, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const seen = [];
    const note = (messages) => seen.push(messages.map(({ role, name }) => name ?? role).join(" "));
    const look = tool({ name: "look", description: "looks", inputSchema: { type: "object" }, execute: (_, { state }) => (note(state.context), "seen") });
    const middleware = [{ name: "watch", beforeModel: ({ messages }) => void note(messages) }];
    const model = scriptedModel(callsOf(["todo_write", { todos: [{ content: "look" }] }], ["look", {}], ["look", {}]));
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), taskList: true, tools: [look], middleware });
    await agent.call("go", slot);
    const grown = (n) => ["user", ...Array(n).fill("assistant tool")].join(" ");
    assert.deepEqual(seen, [grown(0), grown(1), `${grown(1)} assistant`, grown(2), `${grown(2)} assistant`, grown(3)]);
    const sent = model.requests.map(({ messages }) => messages.map(({ role, name }) => name ?? role).join(" "));
    assert.deepEqual(sent, [grown(0), `${grown(1)} system`, `${grown(2)} system`, `${grown(3)} system`]);
    await agent.close();
  },
);
