// The smallest program that answers, with a tool and a provider: the AI SDK.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ToolLoopAgent, jsonSchema, tool } from "ai";

const schema = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
const tools = { forecast: tool({ description: "The weather", inputSchema: schema, execute: async () => "rain" }) };

export async function answer(text, baseUrl) {
  const model = createOpenAICompatible({ name: "program", baseURL: baseUrl, apiKey: "a-key-of-usual-length" })("m");
  const result = await new ToolLoopAgent({ model, tools }).stream({ prompt: text });
  return result.text;
}
