// Subagents that need the approval of a person: the parent gets a result, and the person answers in the subagent's own session.
import { story } from "../support/project.mjs";

// R65
story(
  "R65: a subagent that must ask a person ends as asking, is answered in its own session, and can be continued",
  async ({ createAgent, scriptedModel, tool, memoryStore, outcomesOf, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const sunk = [];
    const sink = tool({ name: "sink", description: "sinks", inputSchema: { type: "object" }, execute: (_, { sessionId }) => void sunk.push(sessionId) });
    const use = (name, input) => ({ toolCalls: [{ name, input }] });
    const model = scriptedModel([
      use("agent_spawn", { agent_id: "worker", task: "sink it", label: "boats" }),
      use("agent_list", {}),
      "It asks.",
      use("agent_send", { agent_key: "boats", message: "is it done?" }),
      "It is.",
    ]);
    const worker = scriptedModel([{ text: "May I?", ...use("sink", {}) }, "Sunk.", "Yes, it is done."]);
    const subagents = [{ name: "worker", description: "works", model: worker, tools: ["sink"], systemPrompt: "You sink." }];
    const agent = await createAgent({ name: "helper", model, tools: [sink], store: memoryStore(), subagents, permissions: { mode: "bypass", ask: ["sink"] } });
    const reply = await agent.call("go", slot);
    const [asking, listed] = outcomesOf(reply);
    assert.match(asking, /^task_id: \w+\nstatus: asking\nagent_id: worker\n[^]*\nlabel: boats\n\nMay I\?\nIt waits for a person to answer in its own session\.$/);
    assert.match(listed, /\(worker, boats\): asking$/);
    assert.deepEqual([reply.reason, await agent.asks(slot), sunk], ["stop", [], []], "the parent has no question of its own");

    const child = { userId: "alice", sessionId: asking.match(/agent_key: (.*)/)[1] };
    const [{ toolCallId, name, kind }] = await agent.asks(child);
    assert.deepEqual([name, kind], ["sink", "approval"]);
    const { text } = await agent.confirm(child, [{ toolCallId, approve: true }]).result;
    assert.deepEqual([text, sunk], ["Sunk.", [child.sessionId]]);
    const { system, tools } = worker.requests[1];
    assert.deepEqual([system, tools.map(({ name }) => name)], ["You sink.", ["sink"]], "the subagent keeps its instructions and tools");
    assert.deepEqual((await agent.getAgentState(child)).permission_context, (await agent.getAgentState(slot)).permission_context);
    const [done] = outcomesOf(await agent.call("and?", slot));
    assert.match(done, /\nstatus: completed\n[^]*\n\nYes, it is done\.$/);
    const notes = (await agent.history(slot)).filter(({ name }) => name === "system");
    assert.deepEqual(notes, [], "a result that a tool has reported is not reported again");
    worker.finished();
    await agent.close();
  },
);

// R65, R25
story(
  "R65: a parent that continues an asking subagent does not answer for the person: the question is denied",
  async ({ createAgent, scriptedModel, tool, memoryStore, outcomesOf, resultsIn, assert }) => {
    const slot = { userId: "alice", sessionId: "s" };
    const sink = tool({ name: "sink", description: "sinks", inputSchema: { type: "object" }, execute: () => assert.fail("it ran without approval") });
    const use = (name, input) => ({ toolCalls: [{ name, input }] });
    const spawn = use("agent_spawn", { agent_id: "worker", task: "sink it", label: "boats" });
    const model = scriptedModel([spawn, use("agent_send", { agent_key: "boats", message: "I say yes" }), "Done."]);
    const worker = scriptedModel([use("sink", {}), "I did not."]);
    const subagents = [{ name: "worker", description: "works", model: worker }];
    const agent = await createAgent({ name: "helper", model, tools: [sink], store: memoryStore(), subagents, permissions: { mode: "bypass", ask: ["sink"] } });
    const [, sent] = outcomesOf(await agent.call("go", slot));
    assert.match(sent, /\nstatus: completed\n[^]*\n\nI did not\.$/);
    assert.deepEqual(resultsIn(worker.requests[1].messages).map(({ state }) => state), ["denied"]);
    assert.deepEqual(await agent.asks({ userId: "alice", sessionId: sent.match(/agent_key: (.*)/)[1] }), []);
    await agent.close();
  },
);
