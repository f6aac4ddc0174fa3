// An agent with all features on, for the test of a whole session.

const SKILL = { name: "carpentry", description: "making tables", content: "Measure twice.", toolGroups: ["shop"] };

/** A tool without input that always returns the same. */
const plain = (tool, name, says) => tool({ name, description: name, inputSchema: { type: "object" }, execute: () => says });

/**
 * The agent, over a store. `ask` sends one question, and the model takes the given steps, as with `play`: a text, tool calls, each
 * `[name, input]`, or a function of the request. The tool `counter` waits for `gate`; the tool `idler` never ends by itself.
 */
export async function everything({ createAgent, scriptedModel, modelOf, signpost, tool, textOf }, store) {
  const slot = { userId: "alice", sessionId: "whole" };
  const gate = signpost();
  const stopped = (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve));
  const counter = modelOf(async function* ({ messages }, { signal }) {
    await Promise.race([gate.passed, stopped(signal)]);
    yield { type: "text", text: `7, when asked to ${textOf(messages.findLast(({ role }) => role === "user"))}` };
  });
  const idler = modelOf(async function* (_, { signal }) {
    await stopped(signal);
  });
  const notes = modelOf(async function* () {
    yield { type: "text", text: "NONE" };
  });
  const script = [];
  const model = scriptedModel(script);
  const agent = await createAgent({
    name: "helper",
    systemPrompt: "Build boats.",
    model,
    store,
    workspace: true,
    memory: { model: notes },
    sessionTools: { agents: ["writer"] },
    planMode: true,
    taskList: true,
    metaTool: true,
    tools: [plain(tool, "saw", "sawn"), plain(tool, "paint", "painted")],
    toolGroups: [{ name: "shop", description: "cuts", tools: ["saw"], active: false }],
    skills: [SKILL],
    permissions: { mode: "bypass", deny: ["paint"] },
    subagents: [
      { name: "counter", description: "counts", model: counter },
      { name: "idler", description: "idles", model: idler },
    ],
    compaction: { model: scriptedModel(["They planned and built."]), keepMessages: 2, triggerMessages: 500 },
    maxIterations: 20,
  });
  const play = (...steps) => void script.push(...steps.map((step) => (Array.isArray(step) ? { toolCalls: step.map(called) } : step)));
  const ask = (question, ...steps) => {
    play(...steps);
    return agent.call(question, slot);
  };
  /** Sends simple questions, from one turn number to another. */
  const talk = async (from, to) => {
    for (let turn = from; turn <= to; turn++) await ask(`Word ${turn}.`, `Answer ${turn}.`);
  };
  return { agent, model, slot, gate, ask, play, talk };
}

const called = ([name, input]) => ({ name, input });
