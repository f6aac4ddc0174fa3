// The smallest program that answers, with a tool and a provider: LangGraph.
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph/web";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const forecast = tool(async () => "rain", { name: "forecast", description: "The weather", schema });

export async function answer(text, baseUrl) {
  const configuration = { baseURL: baseUrl, dangerouslyAllowBrowser: true };
  const model = new ChatOpenAI({ model: "m", apiKey: "a-key-of-usual-length", configuration });
  const agent = createAgent({ model, tools: [forecast], checkpointer: new MemorySaver() });
  const how = { configurable: { thread_id: "s" }, streamMode: "messages" };
  // Read as a stream, because `invoke` fetches token tables from another host.
  let said = "";
  for await (const [chunk] of await agent.stream({ messages: [{ role: "user", content: text }] }, how)) said += chunk.text;
  return said;
}
