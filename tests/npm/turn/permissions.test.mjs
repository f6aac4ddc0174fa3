// Permissions and approvals, with the packed package.
import { story } from "../support/project.mjs";

story(
  "R40, R43: a tool that needs approval pauses the call, and runs once after a person has approved it",
  async ({ createAgent, tool, memoryStore, scriptedModel, readAll, lines, assert }) => {
    const ran = [];
    const inputSchema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
    const send = tool({ name: "send", description: "sends", inputSchema, needsApproval: true, execute: (input) => (ran.push(input), "sent") });
    const look = tool({ name: "look", description: "looks", inputSchema: { type: "object" }, execute: () => (ran.push("look"), "seen") });
    const calls = { toolCalls: [{ name: "look", input: {}, id: "c1" }, { name: "send", input: { to: "bob" }, id: "c2" }] };
    const model = scriptedModel([calls, "done", calls, "as you wish"]);
    const agent = await createAgent({ name: "helper", model, tools: [send, look], store: memoryStore() });
    const slot = { sessionId: "s" };
    const events = await readAll(agent.stream("write to bob", slot));
    const { reply } = events.at(-1);
    assert.equal(reply.reason, "asking");
    assert.deepEqual(events.find(({ type }) => type === "ask").asks, reply.asks);
    assert.deepEqual(await agent.asks(slot), reply.asks);
    const [{ kind, toolCallId, name, input, reason, suggestedRules }] = reply.asks;
    assert.deepEqual([kind, toolCallId, name, input], ["approval", "c2", "send", { to: "bob" }]);
    assert.match(reason, /approve/);
    assert.deepEqual(suggestedRules, [{ tool_name: "send", rule_content: null, behavior: "allow", source: "suggested" }]);
    assert.deepEqual(ran, [], "a tool of the batch has run");
    assert.equal((await agent.session(slot)).asking, true);

    assert.equal((await agent.confirm(slot, [{ toolCallId: "c2", approve: true }]).result).text, "done");
    assert.deepEqual(ran.sort(), [{ to: "bob" }, "look"]);
    assert.equal((await agent.session(slot)).asking, false);

    await agent.call("and again", slot);
    const answers = [{ toolCallId: "c2", approve: false, reason: "not today" }];
    const denied = agent.confirm(slot, answers);
    const seen = await readAll(denied);
    assert.deepEqual(seen.find(({ type }) => type === "answered").answers, answers);
    const end = seen.find((event) => event.type === "tool-end" && event.toolCallId === "c2");
    assert.equal(end.state, "denied");
    assert.match(end.output[0].text, /not today/);
    assert.ok(lines(model.requests[3].messages).includes("denied: The user did not allow this call: not today"), "the model is told why");
    assert.equal(ran.length, 3);
  },
);

story(
  "R39: every permission mode decides as documented",
  async ({ createAgent, tool, memoryStore, scriptedModel, resultsIn, assert }) => {
    const make = (name, rest) => tool({ name, description: name, inputSchema: { type: "object" }, execute: () => "ran", ...rest });
    const tools = [make("act"), make("look", { readOnly: true }), make("careful", { needsApproval: () => true })];
    const calls = [["act", {}], ["look", {}], ["careful", {}], ["write_file", { path: "a.md", content: "x" }], ["session_list", {}]];
    const expected = {
      default: { act: "ask", look: "ask", careful: "ask", write_file: "ask", session_list: "success" },
      accept_edits: { act: "ask", look: "success", careful: "ask", write_file: "success", session_list: "success" },
      explore: { act: "denied", look: "success", careful: "denied", write_file: "denied", session_list: "success" },
      bypass: { act: "success", look: "success", careful: "success", write_file: "success", session_list: "success" },
      dont_ask: { act: "denied", look: "denied", careful: "denied", write_file: "denied", session_list: "success" },
    };
    for (const [mode, outcomes] of Object.entries(expected)) {
      for (const [name, input] of calls) {
        const model = scriptedModel([{ toolCalls: [{ name, input }] }, "done"]);
        const agent = await createAgent({ name: "helper", model, tools, store: memoryStore(), workspace: true, permissions: {} });
        const slot = { sessionId: "s" };
        await agent.setPermissionMode(slot, mode);
        assert.equal((await agent.getAgentState(slot)).permission_context.mode, mode);
        const reply = await agent.call("go", slot);
        const [result] = resultsIn(reply.messages);
        assert.equal(reply.reason === "asking" ? "ask" : result.state, outcomes[name], `${mode}: ${name}`);
      }
    }
  },
);

story(
  "R39: accept_edits lets files be edited in the working directories, and dangerous paths are always asked about",
  async ({ createAgent, memoryStore, scriptedModel, resultsIn, assert }) => {
    const outcome = async (permissions, path) => {
      const model = scriptedModel([{ toolCalls: [{ name: "write_file", input: { path, content: "x" } }] }, "done"]);
      const agent = await createAgent({ name: "helper", model, store: memoryStore(), workspace: true, ...(permissions && { permissions }) });
      const reply = await agent.call("go", { sessionId: "s" });
      return reply.reason === "asking" ? "ask" : resultsIn(reply.messages)[0].state;
    };
    const edits = { mode: "accept_edits", workingDirectories: ["notes"] };
    assert.equal(await outcome(edits, "notes/a.md"), "success");
    assert.equal(await outcome(edits, "notes/./b/../a.md"), "error", "the tool refuses a path out of its folder");
    assert.equal(await outcome(edits, "other/a.md"), "ask");
    assert.equal(await outcome(edits, "notes/.env"), "ask");
    assert.equal(await outcome({ mode: "bypass", allow: ["write_file"] }, ".Git/config"), "ask");
    assert.equal(await outcome(undefined, "a.md"), "success", "without permissions every other path is allowed");
    assert.equal(await outcome(undefined, ".ssh/config"), "ask");
    assert.equal(await outcome({ deny: ["write_file(secret/**)"], allow: ["write_file(**)"] }, "secret/a.md"), "denied");
  },
);

story(
  "R39, A-06: rules with content are matched by the tool, deny before ask before allow",
  async ({ createAgent, tool, memoryStore, scriptedModel, resultsIn, refusal, assert }) => {
    const matches = (rule, { to }) => to.startsWith(rule);
    const send = tool({ name: "send", description: "sends", inputSchema: { type: "object", properties: { to: { type: "string" } } }, matches, execute: () => "sent" });
    const blunt = tool({ name: "blunt", description: "has no matches", inputSchema: { type: "object" }, execute: () => "ran" });
    const permissions = { deny: ["send(bad)", "blunt(x)"], ask: ["send(b)"], allow: ["send(ba)", "send(good)", "blunt"] };
    const outcome = async (name, input) => {
      const model = scriptedModel([{ toolCalls: [{ name, input }] }, "done"]);
      const agent = await createAgent({ name: "helper", model, tools: [send, blunt], store: memoryStore(), permissions });
      const reply = await agent.call("go", { sessionId: "s" });
      return reply.reason === "asking" ? "ask" : resultsIn(reply.messages)[0].state;
    };
    assert.equal(await outcome("send", { to: "bad@x" }), "denied");
    assert.equal(await outcome("send", { to: "bat@x" }), "ask");
    assert.equal(await outcome("send", { to: "good@x" }), "success");
    assert.equal(await outcome("send", { to: "other@x" }), "ask");
    assert.equal(await outcome("blunt", {}), "denied", "a deny rule that cannot be compared denies");
    const model = scriptedModel([]);
    for (const wrong of [
      { allow: ["send("] }, { deny: "send" }, { allow: [7] }, { mode: "yolo" }, { allowed: [] }, { workingDirectories: [1] },
      { deny: [{ tool_name: "send", rule_content: null, behavior: "allow", source: "x" }] },
    ]) {
      assert.equal((await refusal(() => createAgent({ name: "helper", model, tools: [send], store: memoryStore(), permissions: wrong }))).code, "OPTIONS");
    }
    for (const config of [{ needsApproval: "yes" }, { permission: "ask" }, { matches: true }, { readOnly: 1 }]) {
      assert.equal((await refusal(() => tool({ name: "t", description: "t", inputSchema: { type: "object" }, ...config }))).code, "OPTIONS");
    }
  },
);

story(
  "R41: a person may change the input, and the changed input is checked, run and shown to the model",
  async ({ createAgent, tool, memoryStore, scriptedModel, refusal, assert }) => {
    const ran = [];
    const inputSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: ({ to }) => ({ value: { to: to.toUpperCase() } }),
        jsonSchema: { input: () => ({ type: "object", properties: { to: { type: "string" } }, required: ["to"] }) },
      },
    };
    const send = tool({ name: "send", description: "sends", inputSchema, needsApproval: true, execute: (input) => (ran.push(input), "sent") });
    const model = scriptedModel([{ toolCalls: [{ name: "send", input: { to: "bob" }, id: "c1" }] }, "done"]);
    const agent = await createAgent({ name: "helper", model, tools: [send], store: memoryStore() });
    const slot = { sessionId: "s" };
    await agent.call("write", slot);
    const wrong = await refusal(() => agent.confirm(slot, [{ toolCallId: "c1", approve: true, input: { to: 7 } }]).result);
    assert.equal(wrong.code, "INPUT_INVALID");
    assert.match(wrong.message, /to/);
    assert.equal((await agent.asks(slot)).length, 1);
    await agent.confirm(slot, [{ toolCallId: "c1", approve: true, input: { to: "erin" } }]).result;
    assert.deepEqual(ran, [{ to: "ERIN" }]);
    const calls = (messages) => messages.flatMap(({ content }) => content.filter(({ type }) => type === "tool_use"));
    assert.deepEqual(calls(model.requests[1].messages)[0].input, { to: "erin" }, "the model sees what ran");
    const [told] = calls(await agent.history(slot));
    assert.deepEqual([told.input, told.state], [{ to: "erin" }, "finished"]);
    for (const answers of [[{ toolCallId: "c1", approve: true }], [{ toolCallId: "x", approve: true }]]) {
      assert.equal((await refusal(() => agent.confirm(slot, answers).result)).code, "NOT_ASKING");
    }
    assert.equal(ran.length, 1);
  },
);

story(
  "R42: rules that a person has remembered hold after a restart, and only in their session",
  async ({ createAgent, tool, scriptedModel, assert }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const ran = [];
    const send = tool({ name: "send", description: "sends", inputSchema: { type: "object" }, needsApproval: true, execute: () => (ran.push(1), "sent") });
    const open = (script) => createAgent({ name: "helper", model: scriptedModel(script), tools: [send], store: fileStore("./kept") });
    const call = { toolCalls: [{ name: "send", input: {}, id: "c1" }] };
    const slot = { userId: "alice", sessionId: "s" };
    const first = await open([call, "done"]);
    const [{ suggestedRules }] = (await first.call("go", slot)).asks;
    await first.confirm(slot, [{ toolCallId: "c1", approve: true, remember: suggestedRules }]).result;
    await first.close();
    const second = await open([call, "again", call]);
    assert.equal((await second.call("once more", slot)).text, "again");
    assert.deepEqual((await second.getAgentState(slot)).permission_context.allow_rules, suggestedRules);
    assert.equal((await second.call("elsewhere", { ...slot, sessionId: "other" })).reason, "asking");
    assert.equal(ran.length, 2);
    await second.close();
  },
);

story(
  "after a remembered rule that allows one tool no other tool asks: not in the session, not in its workspace, not in a subagent",
  async ({ createAgent, tool, memoryStore, modelOf, textOf, resultsIn, assert }) => {
    const make = (name, rest) => tool({ name, description: name, inputSchema: { type: "object" }, execute: () => `${name} ran`, ...rest });
    const tools = [make("send", { needsApproval: true }), make("look"), make("act")];
    const model = modelOf(async function* ({ messages }) {
      const last = messages.findLast(({ metadata }) => metadata?.reminder !== true);
      if (last.role === "tool") return yield { type: "text", text: "done" };
      const calls = textOf(last).startsWith("child")
        ? [["look", {}], ["send", {}]]
        : { first: [["send", {}]], then: [["look", {}], ["act", {}], ["write_file", { path: "a.md", content: "x" }], ["send", {}], ["agent_spawn", { agent_id: "worker", task: "child" }]] }[textOf(last)];
      for (const [index, [name, input]] of calls.entries()) yield { type: "tool-call", index, id: `${name}-${messages.length}`, name, arguments: JSON.stringify(input) };
    });
    const agent = await createAgent({ name: "helper", model, tools, store: memoryStore(), workspace: true, subagents: [{ name: "worker", description: "works" }] });
    const slot = { userId: "ada", sessionId: "s" };
    const asked = await agent.call("first", slot);
    assert.deepEqual(asked.asks.map(({ name }) => name), ["send"]);
    const [{ toolCallId, suggestedRules }] = asked.asks;
    await agent.confirm(slot, [{ toolCallId, approve: true, remember: suggestedRules }]).result;
    const reply = await agent.call("then", slot);
    assert.deepEqual([reply.reason, reply.asks], ["stop", []]);
    const results = resultsIn(reply.messages);
    assert.deepEqual(results.map(({ name, state }) => [name, state]), ["look", "act", "write_file", "send", "agent_spawn"].map((name) => [name, "success"]));
    assert.match(textOf(results[4].output), /done/, "the subagent was asked nothing either");
  },
);

story(
  "A-07: a permission, needsApproval or matches that throws, hangs or answers nonsense denies the call",
  async ({ createAgent, tool, memoryStore, scriptedModel, resultsIn, assert }) => {
    const ran = [];
    const inputSchema = { type: "object" };
    const make = (name, rest) => tool({ name, description: name, inputSchema, timeoutMs: 50, execute: () => (ran.push(name), "ran"), ...rest });
    const tools = [
      make("throws", { permission() { throw new Error("no idea"); } }),
      make("rejects", { needsApproval: async () => { throw "a string"; } }),
      make("hangs", { permission: () => new Promise(() => {}) }),
      make("nonsense", { permission: () => "sure" }),
      make("nothing", { needsApproval: () => undefined }),
      make("promises", { matches: async () => true }),
      make("suspends", { permission: (_, context) => context.suspend("later") }),
    ];
    const permissions = { mode: "bypass", allow: ["promises(x)"] };
    for (const { name } of tools) {
      const model = scriptedModel([{ toolCalls: [{ name, input: {} }] }, "done"]);
      const agent = await createAgent({ name: "helper", model, tools, store: memoryStore(), permissions });
      const [result] = resultsIn((await agent.call("go", { sessionId: "s" })).messages);
      assert.equal(result.state, "denied", name);
    }
    assert.deepEqual(ran, []);
  },
);

story(
  "A-05: permissions of the host apply to every stored session state",
  async ({ createAgent, tool, memoryStore, scriptedModel, resultsIn, refusal, assert }) => {
    const store = memoryStore();
    const make = (name) => tool({ name, description: name, inputSchema: { type: "object" }, execute: () => "ran" });
    const tools = [make("drop"), make("send"), make("look")];
    const slot = { sessionId: "s" };
    const rule = (tool_name) => ({ tool_name, rule_content: null, behavior: "allow", source: "user" });
    const wide = { mode: "bypass", allow_rules: [rule("drop"), rule("send")], ask_rules: [], deny_rules: [], working_directories: [] };
    const before = await createAgent({ name: "helper", model: scriptedModel(["hello"]), tools, store });
    await before.call("hello", slot);
    await before.replacePermissions(slot, wide);
    assert.deepEqual((await before.getAgentState(slot)).permission_context, wide);
    const call = (name) => ({ toolCalls: [{ name, input: {}, id: name }] });
    const model = scriptedModel([call("drop"), "no", call("look"), "yes", call("send")]);
    const agent = await createAgent({ name: "helper", model, tools, store, permissions: { deny: ["drop"], ask: ["send"] } });
    assert.equal(resultsIn((await agent.call("drop it", slot)).messages)[0].state, "denied");
    assert.equal(resultsIn((await agent.call("look", slot)).messages)[0].state, "success");
    const asked = await agent.call("send it", slot);
    assert.deepEqual([asked.reason, asked.asks[0].suggestedRules], ["asking", []], "no rule of the session can allow it");
    for (const wrong of [undefined, {}, { ...wide, mode: "yolo" }, { ...wide, allow_rules: [{}] }, { ...wide, deny_rules: undefined }]) {
      assert.equal((await refusal(() => agent.replacePermissions(slot, wrong))).code, "INPUT_INVALID");
    }
    assert.equal((await refusal(() => agent.setPermissionMode(slot, "yolo"))).code, "INPUT_INVALID");
    assert.equal((await agent.asks(slot)).length, 1, "permissions may change while a question is open");
  },
);

story(
  "a plain message denies open questions, and a fresh session starts with the permissions of the options",
  async ({ createAgent, tool, memoryStore, scriptedModel, lines, assert }) => {
    const send = tool({ name: "send", description: "sends", inputSchema: { type: "object" }, permission: () => "pass", execute: () => "sent" });
    const model = scriptedModel([{ toolCalls: [{ name: "send", input: {}, id: "c1" }] }, "never mind then"]);
    const permissions = { mode: "accept_edits", ask: ["send"], workingDirectories: ["notes"] };
    const agent = await createAgent({ name: "helper", model, tools: [send], store: memoryStore(), permissions });
    const slot = { sessionId: "s" };
    assert.equal((await agent.call("go", slot)).reason, "asking");
    const { mode, ask_rules, working_directories } = (await agent.getAgentState(slot)).permission_context;
    assert.deepEqual([mode, working_directories], ["accept_edits", ["notes"]]);
    assert.deepEqual(ask_rules, [{ tool_name: "send", rule_content: null, behavior: "ask", source: "options" }]);
    assert.equal((await agent.call("forget it", slot)).reason, "stop");
    assert.match(lines(model.requests[1].messages)[2], /^denied: .*said something else/);
    assert.deepEqual(await agent.asks(slot), []);
  },
);
