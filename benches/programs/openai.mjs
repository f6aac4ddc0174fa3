// The smallest program that answers, with a tool and a provider: OpenAI Agents.
import { Agent, MemorySession, OpenAIChatCompletionsModel, Runner, tool } from "@openai/agents";
import OpenAI from "openai";

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const forecast = tool({ name: "forecast", description: "The weather", parameters, strict: true, execute: async () => "rain" });

export async function answer(text, baseUrl) {
  const client = new OpenAI({ baseURL: baseUrl, apiKey: "a-key-of-usual-length", dangerouslyAllowBrowser: true });
  const agent = new Agent({ name: "program", instructions: "", model: new OpenAIChatCompletionsModel(client, "m"), tools: [forecast] });
  const result = await new Runner({ tracingDisabled: true }).run(agent, text, { session: new MemorySession(), stream: true });
  await result.completed;
  return result.finalOutput;
}
