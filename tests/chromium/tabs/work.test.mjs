// Tasks, plans and subagents of one tab as another tab of the origin sees them, during changes and afterwards.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

/** Makes an agent in a page whose model makes these tool calls, each `[name, input]`, and then answers "Done."; `window.agent`. */
const begin = (page, calls) =>
  within(page, async ({ createAgent, customModel }, calls) => {
    const script = [...calls];
    const model = customModel({
      id: "script",
      async *generate() {
        const [name, input] = script.shift() ?? [];
        if (name === undefined) return yield { type: "text", text: "Done." };
        yield { type: "tool-call", index: 0, id: `call-${script.length}`, name, arguments: JSON.stringify(input) };
      },
    });
    window.agent = await createAgent({ name: "helper", model, taskList: true, planMode: true, workspace: true });
  }, calls);

// R45, R46
story("R45, R46: a second tab sees tasks and plan mode change in the first, and approves the plan", async ({ page, open }) => {
  const todos = [{ content: "look", status: "in_progress" }];
  await begin(page, [["todo_write", { todos }], ["plan_enter", {}], ["write_file", { path: "a", content: "x" }], ["plan_write", { content: "1. look" }], ["plan_exit", {}]]);
  const second = await open();
  await begin(second, []);
  await within(second, () => {
    window.seen = [];
    window.heardAsk = new Promise((resolve) => {
      window.agent.subscribe({ sessionId: "s" }, (event) => {
        if (event.type === "tasks") window.seen.push(event.tasks.map(({ subject, state }) => `${subject} ${state}`).join());
        if (event.type === "plan") window.seen.push(event.plan.plan_active);
        if (event.type === "tool-end" && event.state === "denied") window.seen.push(`${event.name} denied`);
        if (event.type === "ask") resolve();
      });
    });
  });
  await within(page, () => window.agent.call("go", { sessionId: "s" }).then(({ reason }) => reason));
  const seen = await within(second, () => window.heardAsk.then(() => window.seen));
  assert.deepEqual(seen, ["look in_progress", true, "write_file denied"]);
  const text = await within(second, async () => {
    const [{ toolCallId }] = await window.agent.asks({ sessionId: "s" });
    return (await window.agent.confirm({ sessionId: "s" }, [{ toolCallId, approve: true }]).result).text;
  });
  assert.equal(text, "Done.");
  const state = await within(page, () => window.agent.getAgentState({ sessionId: "s" }));
  assert.deepEqual(state.plan_mode_context, { plan_active: false, current_plan_file: "plans/PLAN.md" });
  assert.deepEqual(state.tasks_context.tasks.map(({ subject }) => subject), ["look"]);
});

// R64, R65
story("R64, R65: a second tab sees a running subagent of the first, cannot cancel it, and gets its end once", async ({ page, open }) => {
  const slot = { sessionId: "s" };
  const begin = (each, calls) =>
    within(each, async ({ createAgent, customModel }, calls) => {
      const released = new Promise((resolve) => (window.release = resolve));
      const slow = customModel({
        id: "slow",
        async *generate() {
          yield { type: "text", text: "7 " };
          await released;
          yield { type: "text", text: "boats" };
        },
      });
      const script = [...calls];
      const model = customModel({
        id: "script",
        async *generate({ messages }) {
          const [name, input] = script.shift() ?? [];
          if (name === undefined) return yield { type: "text", text: "Done." };
          const [, task_id] = JSON.stringify(messages).match(/task_id: (\w+)/) ?? [];
          yield { type: "tool-call", index: 0, id: `call-${script.length}`, name, arguments: JSON.stringify(input ?? { task_id }) };
        },
      });
      window.agent = await createAgent({ name: "helper", model, subagents: [{ name: "slow", description: "counts", model: slow }] });
      window.results = async () => (await window.agent.history({ sessionId: "s" })).flatMap(({ content }) => content.flatMap(({ output = [] }) => output.map(({ text }) => text)));
    }, calls);
  await begin(page, [["agent_spawn", { agent_id: "slow", task: "count", label: "boats", timeout_seconds: 0.05 }]]);
  const second = await open();
  await begin(second, [["task_list", {}], ["task_cancel"]]);
  await within(second, (_, slot) => {
    window.seen = [];
    window.agent.subscribe(slot, ({ type, agent, event }) => type === "subagent" && window.seen.push(`${agent} ${event.type} ${event.delta ?? ""}`));
  }, slot);
  await within(page, (_, slot) => window.agent.call("go", slot), slot);
  await second.waitForFunction("window.seen.includes('slow text-delta 7 ')");
  assert.equal((await second.evaluate("window.seen"))[0], "slow call-start ");
  // While it runs: it is listed, and belongs to the tab that started it.
  const [, listed, refused] = await within(second, async (_, slot) => {
    await window.agent.call("look", slot);
    return window.results();
  }, slot);
  assert.match(listed, /^- \w+ \(slow, boats\): running$/);
  assert.match(refused, /runs in another process, which alone can stop it\.$/);
  await within(page, () => {
    window.release();
    return window.agent.drain();
  });
  const notes = await within(second, async ({ textOf }, slot) => {
    await window.agent.call("and?", slot);
    await window.agent.call("and now?", slot);
    return (await window.agent.history(slot)).filter(({ name }) => name === "system").map(textOf);
  }, slot);
  assert.equal(notes.length, 1);
  assert.match(notes[0], /status: completed[^]*label: boats\n\n7 boats$/);
});
