// Mastra's agent with its own memory store and its default options: the model sees ten messages.
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { Memory } from "@mastra/memory";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput } from "../script.mjs";
import { scripted } from "./ai-sdk.mjs";

const forecast = createTool({
  id: toolName,
  description: toolDescription,
  inputSchema: z.object({ city: z.string(), days: z.number() }),
  execute: async () => toolOutput,
});

export async function create({ script, baseUrl, counting }) {
  const storage = new InMemoryStore();
  let count = 0;
  if (counting) {
    const kept = await storage.getStore("memory");
    const save = kept.saveMessages.bind(kept);
    kept.saveMessages = (request) => {
      count += JSON.stringify(request.messages).length;
      return save(request);
    };
  }
  const memory = new Memory({ storage });
  const model = baseUrl ? createOpenAICompatible({ name: "bench", baseURL: baseUrl, apiKey: "a-key-of-usual-length" })("m") : scripted(script, "v2");
  const agent = new Agent({ id: "bench", name: "bench", instructions, model, memory, tools: { [toolName]: forecast } });
  const of = (id) => ({ memory: { thread: id, resource: "someone" } });
  return {
    seed: async (id, n) => {
      await memory.createThread({ threadId: id, resourceId: "someone" });
      if (n > 0) await memory.saveMessages({ messages: history(id, n) });
    },
    call: async (id, text) => (await agent.generate(text, of(id))).text,
    stream: async (id, text, onDelta) => {
      const result = await agent.stream(text, of(id));
      for await (const delta of result.textStream) onDelta(delta);
    },
    messages: async (id) => {
      const { messages } = await memory.recall({ threadId: id, resourceId: "someone", perPage: false });
      return messages.flatMap(read);
    },
    bytes: () => {
      const bytes = count;
      count = 0;
      return bytes;
    },
    close: async () => {},
  };
}

// Mastra keeps the call, the result and the answer in one message; here they count as separate messages, as elsewhere.
function read({ role, content }) {
  return content.parts.flatMap((part) => {
    if (part.type === "text") return [{ role, text: part.text }];
    if (part.type === "tool-invocation") return [{ role, text: "" }, { role: "tool", text: String(part.toolInvocation.result) }];
    return [];
  });
}

function history(threadId, n) {
  const start = Date.now() - n * 1_000;
  const message = (role, at, parts) => ({ id: newId(), role, threadId, resourceId: "someone", createdAt: new Date(start + at), content: { format: 2, parts } });
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const toolInvocation = { state: "result", toolCallId: newId(), toolName, args: toolInput, result: toolOutput };
    return [
      message("user", at * 2_000, [{ type: "text", text: question(at) }]),
      message("assistant", at * 2_000 + 1_000, [{ type: "tool-invocation", toolInvocation }, { type: "text", text: answer }]),
    ];
  }).flat();
}
