// The measured engines: Lockgate, the alternatives, and a hand-written loop.
// An engine is opened with a Script (or a provider's address) and returns
// `{ seed(id, n), call(id, text), stream(id, text, onDelta), messages(id), bytes(), close() }`, and with `settled()` if it
// has work left after an answer. `bytes()` is the number of bytes written since its last call, if opened with `counting`.

/** By the name that the command line takes: what the table calls it, its module, and the options it is opened with. */
export const engines = {
  lockgate: { title: "Lockgate", module: "./lockgate.mjs" },
  hand: { title: "by hand: array + JSON.stringify", module: "./hand.mjs" },
  ai: { title: "Vercel AI SDK", module: "./ai-sdk.mjs", packages: ["ai"] },
  langgraph: { title: "LangGraph.js, memory", module: "./langgraph.mjs", packages: ["@langchain/langgraph", "langchain"] },
  "langgraph-sqlite": {
    title: "LangGraph.js, SQLite",
    module: "./langgraph.mjs",
    options: { sqlite: true },
    packages: ["@langchain/langgraph-checkpoint-sqlite"],
  },
  openai: { title: "OpenAI Agents JS", module: "./openai-agents.mjs", packages: ["@openai/agents"] },
  mastra: { title: "Mastra (sees the last 10)", module: "./mastra.mjs", packages: ["@mastra/core", "@mastra/memory"] },
  pi: { title: "pi agent core", module: "./pi.mjs", packages: ["@mariozechner/pi-agent-core"] },
};

/** Opens an engine. `script` is what its model says, `baseUrl` instead a provider that speaks chat completions. */
export async function open(name, { script, baseUrl, counting = false } = {}) {
  const { module, options } = engines[name];
  const { create } = await import(module);
  return create({ script, baseUrl, counting, ...options });
}
