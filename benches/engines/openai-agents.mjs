// OpenAI's agents with their own memory session.
import { Agent, MemorySession, OpenAIChatCompletionsModel, Runner, Usage, setTracingDisabled, tool } from "@openai/agents";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput, toolSchema } from "../script.mjs";

setTracingDisabled(true);
const forecast = tool({ name: toolName, description: toolDescription, parameters: toolSchema, strict: true, execute: async () => toolOutput });

export async function create({ script, baseUrl, counting }) {
  const sessions = new Map();
  let count = 0;
  class Counting extends MemorySession {
    async addItems(items) {
      count += JSON.stringify(items).length;
      return super.addItems(items);
    }

    async applyHistoryTransaction(change) {
      count += JSON.stringify(change).length;
      return super.applyHistoryTransaction(change);
    }
  }
  const Session = counting ? Counting : MemorySession;
  const sessionOf = (id) => {
    if (!sessions.has(id)) sessions.set(id, new Session({ sessionId: id }));
    return sessions.get(id);
  };
  const model = baseUrl ? await overHttp(baseUrl) : scripted(script);
  const agent = new Agent({ name: "bench", instructions, model, tools: [forecast] });
  const runner = new Runner({ tracingDisabled: true });
  return {
    seed: async (id, n) => sessions.set(id, new Session({ sessionId: id, initialItems: history(n) })),
    call: async (id, text) => (await runner.run(agent, text, { session: sessionOf(id) })).finalOutput,
    stream: async (id, text, onDelta) => {
      const result = await runner.run(agent, text, { session: sessionOf(id), stream: true });
      for await (const event of result) {
        if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") onDelta(event.data.delta);
      }
      await result.completed;
    },
    messages: async (id) => (await sessionOf(id).getItems()).map(read),
    bytes: () => {
      const bytes = count;
      count = 0;
      return bytes;
    },
    close: async () => {},
  };
}

function read(item) {
  if (item.type === "function_call") return { role: "assistant", text: "" };
  if (item.type === "function_call_result") return { role: "tool", text: item.output?.text ?? String(item.output) };
  return { role: item.role, text: typeof item.content === "string" ? item.content : item.content.map(({ text }) => text).join("") };
}

async function overHttp(baseURL) {
  const { default: OpenAI } = await import("openai");
  return new OpenAIChatCompletionsModel(new OpenAI({ baseURL, apiKey: "a-key-of-usual-length" }), "m");
}

const called = () => ({ type: "function_call", callId: newId(), name: toolName, status: "completed", arguments: JSON.stringify(toolInput) });
const spoken = (text) => ({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] });

function history(n) {
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const call = called();
    const output = { type: "text", text: toolOutput };
    return [
      { type: "message", role: "user", content: question(at) },
      call,
      { type: "function_call_result", callId: call.callId, name: toolName, status: "completed", output },
      spoken(answer),
    ];
  }).flat();
}

function scripted(script) {
  const next = ({ input }) => (typeof input === "string" ? script.next(false, 1) : script.next(input.at(-1).type === "function_call_result", input.length));
  return {
    getResponse: async (request) => {
      const said = await next(request);
      return { usage: new Usage(), output: [said.calls ? called() : spoken(said.text)], responseId: newId() };
    },
    async *getStreamedResponse(request) {
      const said = await next(request);
      yield { type: "response_started" };
      let text = "";
      for await (const delta of said.calls ? [] : (said.pieces ?? [said.text])) {
        text += delta;
        yield { type: "output_text_delta", delta };
      }
      const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
      yield { type: "response_done", response: { id: newId(), usage, output: [said.calls ? called() : spoken(text)] } };
    },
  };
}
