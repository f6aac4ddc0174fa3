// The smallest program that answers, with a tool and a provider: Lockgate. It also stores the conversation (in a page: in IndexedDB).
import { createAgent, openai, tool } from "lockgate";

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const forecast = tool({ name: "forecast", description: "The weather", inputSchema: schema, execute: () => "rain" });

export async function answer(text, baseUrl) {
  const model = openai({ model: "m", baseUrl, apiKey: "a-key-of-usual-length" });
  const agent = await createAgent({ name: "program", model, tools: [forecast] });
  return (await agent.call(text, { sessionId: "s" })).text;
}
