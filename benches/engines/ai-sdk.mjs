// The AI SDK's agent. It stores nothing itself, so its messages are read and written as one JSON text per session.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ToolLoopAgent, jsonSchema, tool } from "ai";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput, toolSchema } from "../script.mjs";
import { Blobs } from "./blob.mjs";

const tools = { [toolName]: tool({ description: toolDescription, inputSchema: jsonSchema(toolSchema), execute: async () => toolOutput }) };

export async function create({ script, baseUrl, blobs = new Blobs() }) {
  const model = baseUrl ? createOpenAICompatible({ name: "bench", baseURL: baseUrl, apiKey: "a-key-of-usual-length" })("m") : scripted(script);
  const agent = new ToolLoopAgent({ model, instructions, tools });
  return {
    seed: async (id, n) => blobs.save(id, history(n)),
    call: async (id, text) => {
      const messages = await blobs.load(id);
      messages.push({ role: "user", content: text });
      const result = await agent.generate({ messages });
      await blobs.save(id, [...messages, ...result.steps.flatMap(({ response }) => response.messages)]);
      return result.text;
    },
    stream: async (id, text, onDelta) => {
      const messages = await blobs.load(id);
      messages.push({ role: "user", content: text });
      const result = await agent.stream({ messages });
      for await (const delta of result.textStream) onDelta(delta);
      await blobs.save(id, [...messages, ...(await result.steps).flatMap(({ response }) => response.messages)]);
    },
    messages: async (id) => (await blobs.load(id)).map(({ role, content }) => ({ role, text: textOf(content) })),
    bytes: () => blobs.bytes(),
    close: async () => {},
  };
}

function history(n) {
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const toolCallId = newId();
    return [
      { role: "user", content: question(at) },
      { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input: toolInput }] },
      { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output: { type: "text", value: toolOutput } }] },
      { role: "assistant", content: [{ type: "text", text: answer }] },
    ];
  }).flat();
}

const textOf = (content) => (typeof content === "string" ? content : content.map((part) => part.text ?? part.output?.value ?? "").join(""));

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

/** The scripted model behind the AI SDK's provider interface; `version` is that of the specification. */
export function scripted(script, version = "v4") {
  const next = ({ prompt }) => script.next(prompt.at(-1).role === "tool", prompt.filter(({ role }) => role !== "system").length);
  const finish = (unified) => (version === "v2" ? (unified === "tool-calls" ? "tool-calls" : "stop") : { unified, raw: unified });
  const call = () => ({ type: "tool-call", toolCallId: newId(), toolName, input: JSON.stringify(toolInput) });
  return {
    specificationVersion: version,
    provider: "bench",
    modelId: "script",
    supportedUrls: {},
    doGenerate: async (options) => {
      const said = await next(options);
      const content = said.calls ? [call()] : [{ type: "text", text: said.text }];
      return { content, finishReason: finish(said.calls ? "tool-calls" : "stop"), usage, warnings: [] };
    },
    doStream: async (options) => {
      const said = await next(options);
      const parts = said.calls ? [call()] : textParts(said.pieces ?? [said.text]);
      const end = { type: "finish", finishReason: finish(said.calls ? "tool-calls" : "stop"), usage };
      return { stream: ReadableStream.from(chain([{ type: "stream-start", warnings: [] }], parts, [end])) };
    },
  };
}

async function* textParts(pieces) {
  yield { type: "text-start", id: "t" };
  for await (const delta of pieces) yield { type: "text-delta", id: "t", delta };
  yield { type: "text-end", id: "t" };
}

async function* chain(...lists) {
  for (const list of lists) yield* list;
}
