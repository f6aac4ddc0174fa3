// Skills of the packed package: listed, loaded with their tools, refused, and kept; the host's and the workspace's.
import { story } from "../support/project.mjs";
import { beside, relay } from "../support/two-processes.mjs";

story(
  "a model sees the list of skills, loads one, and has its tools from then on",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, tool, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const saw = tool({ name: "saw", description: "saws", inputSchema: { type: "object" }, execute: () => "sawn" });
    const skill = { name: "carpentry", description: "making tables", content: "Measure twice.", resources: { "joints.md": "Dovetails." }, toolGroups: ["shop"] };
    const model = scriptedModel(
      callsOf(["saw", {}], ["load_skill", { name: "carpentry" }], ["saw", {}], ["load_skill", { name: "carpentry", path: "joints.md" }], ["load_skill", { name: "tea" }]),
    );
    const agent = await createAgent({
      name: "helper", systemPrompt: "Be brief.", model, store: memoryStore(), workspace: true, tools: [saw], skills: [skill],
      toolGroups: [{ name: "shop", description: "cuts", tools: ["saw"], active: false, scope: "host" }],
    });
    await agent.files.write("alice", "skills/tea/SKILL.md", "---\nname: tea\ndescription: making tea\n---\n\nBoil water.\n");
    const told = outcomesOf(await agent.call("go", slot));
    assert.match(told[0], /^error: The tool "saw" is not on in this session/);
    assert.equal(told[1], "Measure twice.\n\n(Other files, to be read with load_skill and their path: joints.md.)");
    assert.deepEqual(told.slice(2), ["sawn", "Dovetails.", "Boil water."]);
    const { system } = model.requests[0];
    assert.ok(system.startsWith("Be brief.\n\n") && system.endsWith("\n- carpentry: making tables\n- tea: making tea"), system);
    assert.ok(model.requests.every((request) => request.system === system), "the instructions stay the same");
    assert.ok(textOf(model.requests.at(-1).messages.at(-1)).endsWith("carpentry, tea."));
    const { activated_skills, activated_groups } = (await agent.getAgentState(slot)).tool_context;
    assert.deepEqual([activated_skills, activated_groups], [["carpentry", "tea"], ["shop"]]);
    await agent.close();
  },
);

story(
  "a missing skill or skill file is refused with the existing names, and no user can read another user's skills",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const skills = [{ name: "carpentry", description: "making tables", content: "Measure twice." }];
    const script = callsOf(["load_skill", { name: "tea" }], ["load_skill", { name: "carpentry", path: "x.md" }], ["load_skill", { name: "carpentry", path: "../../a" }]);
    const model = scriptedModel([...script, ...script]);
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), workspace: true, skills });
    await agent.files.write("bob", "skills/tea/SKILL.md", "---\ndescription: making tea\n---\nBoil water.");
    const refused = [
      'error: There is no skill "tea". The skills are: carpentry.',
      'error: The skill "carpentry" has no file "x.md". Its files are: SKILL.md.',
      'error: The skill "carpentry" has no file "../../a". Its files are: SKILL.md.',
    ];
    assert.deepEqual(outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" })), refused);
    assert.deepEqual((await agent.getAgentState({ userId: "alice", sessionId: "s" })).tool_context.activated_skills, []);
    const [tea] = outcomesOf(await agent.call("go", { userId: "bob", sessionId: "s" }));
    assert.equal(tea, "Boil water.");
    await agent.close();
  },
);

story(
  "a model that calls load_skill with wrong arguments gets an error that names them",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const skills = [{ name: "carpentry", description: "making tables", content: "Measure twice." }];
    const model = scriptedModel(callsOf(["load_skill", {}], ["load_skill", { name: 7 }], ["load_skill", { name: "carpentry", path: ["a"] }]));
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), skills });
    const told = outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" }));
    for (const [at, place] of ["name", "name", "path"].entries()) {
      assert.match(told[at], /^error: The arguments do not fit what the tool takes/);
      assert.ok(told[at].includes(place), told[at]);
    }
    await agent.close();
  },
);

story("invalid skills are refused when the agent is created", async ({ createAgent, demoModel, memoryStore, refusal, assert }) => {
  const skill = { name: "a", description: "b", content: "c" };
  const wrong = [["skills", "a"], [[{ ...skill, content: "" }], "skills[0] has no name"], [[skill, skill], "two skills"], [[{ ...skill, toolGroups: ["x"] }], "no group"], [[{ name: "a" }], "description"]];
  for (const [skills, why] of wrong) {
    const error = await refusal(() => createAgent({ name: "helper", model: demoModel(), store: memoryStore(), skills }));
    assert.equal(error.code, "OPTIONS");
    assert.ok(error.message.includes(why) && error.hint, error.message);
  }
});

relay(
  "after a restart of the process a loaded skill and its tools are still on",
  async ({ createAgent, scriptedModel, callsOf, tool }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const saw = tool({ name: "saw", description: "saws", inputSchema: { type: "object" }, execute: () => "sawn" });
    const agent = await createAgent({
      name: "helper", model: scriptedModel(callsOf(["load_skill", { name: "carpentry" }])), store: fileStore(folder), tools: [saw],
      skills: [{ name: "carpentry", description: "making tables", content: "Measure twice.", toolGroups: ["shop"] }],
      toolGroups: [{ name: "shop", description: "cuts", tools: ["saw"], active: false }],
    });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    await agent.close();
  },
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, tool, textOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const saw = tool({ name: "saw", description: "saws", inputSchema: { type: "object" }, execute: () => "sawn" });
    const model = scriptedModel(callsOf(["saw", {}], ["load_skill", { name: "none" }]));
    const agent = await createAgent({
      name: "helper", model, store: fileStore(folder), tools: [saw],
      skills: [{ name: "carpentry", description: "making tables", content: "Measure twice.", toolGroups: ["shop"] }],
      toolGroups: [{ name: "shop", description: "cuts", tools: ["saw"], active: false }],
    });
    const told = outcomesOf(await agent.call("go on", { userId: "alice", sessionId: "s" }));
    assert.deepEqual(told, ["sawn", 'error: There is no skill "none". The skills are: carpentry.']);
    assert.ok(textOf(model.requests[0].messages.at(-1)).endsWith("carpentry."));
    await agent.close();
  },
);

story(
  "after a compaction a loaded skill still has its tools and can be read again",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, tool, textOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const saw = tool({ name: "saw", description: "saws", inputSchema: { type: "object" }, execute: () => "sawn" });
    const model = scriptedModel([...callsOf(["load_skill", { name: "carpentry" }]), "Hm.", ...callsOf(["saw", {}], ["load_skill", { name: "carpentry" }])]);
    const agent = await createAgent({
      name: "helper", model, store: memoryStore(), tools: [saw], compaction: { model: scriptedModel(["They talked."]) },
      skills: [{ name: "carpentry", description: "making tables", content: "Measure twice.", toolGroups: ["shop"] }],
      toolGroups: [{ name: "shop", description: "cuts", tools: ["saw"], active: false }],
    });
    await agent.call("words ".repeat(400), slot);
    await agent.call("hm", slot);
    const before = (await agent.getAgentState(slot)).tool_context;
    await agent.compact(slot);
    assert.deepEqual((await agent.getAgentState(slot)).tool_context, before);
    assert.deepEqual(outcomesOf(await agent.call("go on", slot)), ["sawn", "Measure twice."]);
    const asked = model.requests[3].messages;
    assert.ok(textOf(asked[0]).includes("They talked.") && !JSON.stringify(asked).includes("Measure twice."));
    assert.ok(textOf(asked.at(-1)).endsWith("(load_skill reads them again): carpentry."));
    await agent.close();
  },
);

beside("a second process sees a skill that the first has written, and the first that it was loaded", {
  async here({ createAgent, demoModel, fileStore }, folder) {
    const agent = await createAgent({ name: "helper", model: demoModel(), store: fileStore(folder), workspace: true });
    await agent.files.write("alice", "skills/tea/SKILL.md", "---\nname: tea\ndescription: making tea\n---\nBoil water.");
    return agent;
  },
  there: async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }, { folder }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const model = scriptedModel(callsOf(["load_skill", { name: "tea" }]));
    const agent = await createAgent({ name: "helper", model, store: fileStore(folder), workspace: true });
    assert.deepEqual(outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" })), ["Boil water."]);
    assert.ok(model.requests[0].system.endsWith("- tea: making tea"));
    await agent.close();
  },
  async back({ assert }, agent) {
    const slot = { userId: "alice", sessionId: "s" };
    assert.deepEqual((await agent.getAgentState(slot)).tool_context.activated_skills, ["tea"]);
    const { parts } = await agent.inspect(slot);
    assert.ok(parts.at(-1).kind === "reminder" && parts.at(-1).text.endsWith("tea."));
  },
});
