// pi's agent. It stores nothing itself, so its messages are read and written as one JSON text per session.
import { Agent } from "@mariozechner/pi-agent-core";
import { Type, createAssistantMessageEventStream, streamSimple } from "@mariozechner/pi-ai";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput } from "../script.mjs";
import { Blobs } from "./blob.mjs";

const forecast = {
  name: toolName,
  label: toolName,
  description: toolDescription,
  parameters: Type.Object({ city: Type.String(), days: Type.Number() }),
  execute: async () => ({ content: [{ type: "text", text: toolOutput }], details: {} }),
};

export async function create({ script, baseUrl, blobs = new Blobs() }) {
  const model = { ...card, baseUrl: baseUrl ?? card.baseUrl };
  const how = baseUrl ? { streamFn: streamSimple, getApiKey: () => "a-key-of-usual-length" } : { streamFn: scripted(script) };
  const run = async (id, text, onDelta) => {
    const initialState = { systemPrompt: instructions, model, tools: [forecast], messages: await blobs.load(id) };
    const agent = new Agent({ initialState, ...how });
    if (onDelta) {
      agent.subscribe((event) => {
        if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") onDelta(event.assistantMessageEvent.delta);
      });
    }
    await agent.prompt(text);
    if (agent.state.errorMessage) throw new Error(agent.state.errorMessage);
    await blobs.save(id, agent.state.messages);
    return textOf(agent.state.messages.at(-1).content);
  };
  return {
    seed: async (id, n) => blobs.save(id, history(n)),
    call: (id, text) => run(id, text),
    stream: run,
    messages: async (id) => (await blobs.load(id)).map(({ role, content }) => ({ role: role === "toolResult" ? "tool" : role, text: textOf(content) })),
    bytes: () => blobs.bytes(),
    close: async () => {},
  };
}

const textOf = (content) => (typeof content === "string" ? content : content.map(({ text = "" }) => text).join(""));

const card = {
  id: "m",
  name: "m",
  api: "openai-completions",
  provider: "bench",
  baseUrl: "http://127.0.0.1",
  reasoning: false,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1_000_000,
  maxTokens: 10_000,
};

const none = () => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } });
const said = (content, stopReason) => ({ role: "assistant", content, api: card.api, provider: card.provider, model: card.id, usage: none(), stopReason, timestamp: Date.now() });
const called = () => ({ type: "toolCall", id: newId(), name: toolName, arguments: { ...toolInput } });

function history(n) {
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const call = called();
    const result = { role: "toolResult", toolCallId: call.id, toolName, content: [{ type: "text", text: toolOutput }], details: {}, isError: false, timestamp: Date.now() };
    return [
      { role: "user", content: [{ type: "text", text: question(at) }], timestamp: Date.now() },
      said([call], "toolUse"),
      result,
      said([{ type: "text", text: answer }], "stop"),
    ];
  }).flat();
}

function scripted(script) {
  return (_model, { messages }) => {
    const events = createAssistantMessageEventStream();
    void tell(events, script, messages);
    return events;
  };
}

async function tell(events, script, messages) {
  const next = await script.next(messages.at(-1).role === "toolResult", messages.length);
  const partial = said([], next.calls ? "toolUse" : "stop");
  events.push({ type: "start", partial });
  if (next.calls) {
    partial.content.push(called());
    events.push({ type: "toolcall_start", contentIndex: 0, partial });
    events.push({ type: "toolcall_end", contentIndex: 0, toolCall: partial.content[0], partial });
  } else {
    const block = { type: "text", text: "" };
    partial.content.push(block);
    events.push({ type: "text_start", contentIndex: 0, partial });
    for await (const delta of next.pieces ?? [next.text]) {
      block.text += delta;
      events.push({ type: "text_delta", contentIndex: 0, delta, partial });
    }
    events.push({ type: "text_end", contentIndex: 0, content: block.text, partial });
  }
  events.push({ type: "done", reason: partial.stopReason, message: partial });
}
