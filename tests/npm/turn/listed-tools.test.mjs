// `agent.tools` of the packed package: every tool, where it comes from, and whether a session has it.
import { story } from "../support/project.mjs";

story(
  "the tools of a session are listed, and its active tools are those that the model gets",
  async ({ createAgent, scriptedModel, callsOf, memoryStore, tool, assert }) => {
    const inputSchema = { type: "object", properties: { what: { type: "string" } } };
    const look = tool({ name: "look", description: "looks", inputSchema, readOnly: true, execute: () => "seen" });
    const act = tool({ name: "act", description: "acts", inputSchema, execute: () => "done" });
    const model = scriptedModel(callsOf(["reset_equipped_tools", { to_activate: ["doing"] }]));
    const agent = await createAgent({
      name: "helper", model, store: memoryStore(), tools: [look, act], metaTool: true, workspace: true, sessionTools: false,
      toolGroups: [{ name: "doing", description: "changes things", tools: ["act"], active: false }],
    });
    const slot = { userId: "alice", sessionId: "s" };
    const fresh = await agent.tools(slot);
    assert.deepEqual(fresh[0], { name: "look", description: "looks", inputSchema, source: "agent", readOnly: true, active: true });
    assert.deepEqual(fresh[1], { name: "act", description: "acts", inputSchema, source: "agent", readOnly: false, active: false });
    assert.ok(fresh.slice(2).every(({ source }) => source === "built-in"));
    const about = (name) => fresh.find((each) => each.name === name);
    assert.deepEqual([about("read_file").readOnly, about("write_file").readOnly], [true, false]);
    assert.equal(about("load_skill").active, false);
    assert.deepEqual(await agent.tools(), fresh);
    await agent.call("switch", slot);
    const active = (await agent.tools(slot)).filter((each) => each.active).map(({ name }) => name);
    assert.ok(active.includes("act"));
    assert.deepEqual(active, model.requests.at(-1).tools.map(({ name }) => name));
    assert.deepEqual(await agent.tools({ ...slot, sessionId: "other" }), fresh);
    await agent.close();
  },
);

story(
  "an invalid slot is refused, and without a slot the tools of a fresh session are listed",
  async ({ createAgent, scriptedModel, memoryStore, rejection, assert }) => {
    const agent = await createAgent({ name: "helper", model: scriptedModel([]), store: memoryStore(), requireUserId: true });
    for (const slot of [null, "s", { sessionId: "s" }, { sessionId: 1, userId: "alice" }]) {
      assert.equal((await rejection(agent.tools(slot))).code, "ID_INVALID");
    }
    assert.ok((await agent.tools()).length > 0);
    await agent.close();
  },
);
