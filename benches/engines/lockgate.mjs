// Lockgate with its default options. The default store is its memory store, which keeps bytes.
import { createAgent, customModel, memoryStore, openai, textOf, tool } from "../../dist/entry/node.js";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput, toolSchema } from "../script.mjs";

const forecast = tool({ name: toolName, description: toolDescription, inputSchema: toolSchema, readOnly: true, execute: () => toolOutput });

export async function create({ script, baseUrl, counting, appends = false, store: given = memoryStore() }) {
  const { store, bytes } = counting ? counted(given) : { store: given, bytes: () => 0 };
  const model = baseUrl ? openai({ model: "m", baseUrl, apiKey: "a-key-of-usual-length" }) : scripted(script);
  const agent = await createAgent({ name: "bench", systemPrompt: instructions, model, store, tools: [forecast], queueLimit: 1_000 });
  return {
    // By normal calls, or, where thousands of calls take too long, by appending questions and answers.
    seed: async (id, n) => {
      if (appends) await agent.append({ sessionId: id }, questionsAndAnswers(n));
      else for (let at = 0; at < n / MESSAGES_PER_TURN; at++) await agent.call(question(at), { sessionId: id });
      await agent.drain();
    },
    call: async (id, text) => (await agent.call(text, { sessionId: id })).text,
    stream: async (id, text, onDelta) => {
      for await (const event of agent.stream(text, { sessionId: id })) if (event.type === "text-delta") onDelta(event.delta);
    },
    messages: async (id) => (await agent.history({ sessionId: id }, { limit: 100_000 })).map((message) => ({ role: message.role, text: textOf(message) })),
    settled: () => agent.drain(),
    bytes,
    close: () => agent.close(),
  };
}

/** A history without tool calls: only such messages can be appended. */
export const questionsAndAnswers = (n) =>
  Array.from({ length: n }, (_, at) => (at % 2 === 0 ? { role: "user", content: question(at) } : { role: "assistant", content: answer }));

// Counts the bytes that a store gets.
function counted(store) {
  let count = 0;
  const commit = (batch) => {
    for (const { value } of batch.put) count += value.length;
    return store.commit(batch);
  };
  const bytes = () => {
    const asked = count;
    count = 0;
    return asked;
  };
  return { bytes, store: { name: store.name, capabilities: store.capabilities, get: store.get, list: store.list, commit } };
}

function scripted(script) {
  return customModel({
    id: "script",
    async *generate({ messages }) {
      const said = await script.next(messages.at(-1).role === "tool", messages.length);
      if (said.calls) yield { type: "tool-call", index: 0, id: newId(), name: toolName, arguments: JSON.stringify(toolInput) };
      else if (said.pieces) for await (const text of said.pieces) yield { type: "text", text };
      else yield { type: "text", text: said.text };
    },
  });
}
