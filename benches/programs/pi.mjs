// The smallest program that answers, with a tool and a provider: pi.
import { Agent } from "@mariozechner/pi-agent-core";
import { Type } from "@mariozechner/pi-ai";

const result = { content: [{ type: "text", text: "rain" }], details: {} };
const forecast = { name: "forecast", label: "forecast", description: "The weather", parameters: Type.Object({ city: Type.String() }), execute: async () => result };
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export async function answer(text, baseUrl) {
  const model = { id: "m", name: "m", api: "openai-completions", provider: "program", baseUrl, reasoning: false, input: ["text"], cost, contextWindow: 100_000, maxTokens: 1_000 };
  const agent = new Agent({ initialState: { model, tools: [forecast] }, getApiKey: () => "a-key-of-usual-length" });
  await agent.prompt(text);
  return agent.state.messages.at(-1).content.map((block) => block.text).join("");
}
