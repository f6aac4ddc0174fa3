// The smallest program that answers, with a tool and a provider: Mastra.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { Memory } from "@mastra/memory";
import { z } from "zod";

const forecast = createTool({ id: "forecast", description: "The weather", inputSchema: z.object({ city: z.string() }), execute: async () => "rain" });

export async function answer(text, baseUrl) {
  const model = createOpenAICompatible({ name: "program", baseURL: baseUrl, apiKey: "a-key-of-usual-length" })("m");
  const memory = new Memory({ storage: new InMemoryStore() });
  const agent = new Agent({ id: "program", name: "program", instructions: "", model, memory, tools: { forecast } });
  return (await agent.stream(text, { memory: { thread: "s", resource: "someone" } })).text;
}
