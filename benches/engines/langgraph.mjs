// LangGraph's agent, with its own checkpointers: in memory, or in SQLite.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolDescription, toolInput, toolName, toolOutput, toolSchema } from "../script.mjs";

const forecast = tool(async () => toolOutput, { name: toolName, description: toolDescription, schema: toolSchema });

export async function create({ script, baseUrl, sqlite = false }) {
  const serializer = new Counting();
  const { checkpointer, close } = sqlite ? await sqliteSaver(serializer) : { checkpointer: new MemorySaver(serializer), close: async () => {} };
  const model = baseUrl ? await overHttp(baseUrl) : new Scripted({ script });
  const agent = createAgent({ model, tools: [forecast], systemPrompt: instructions, checkpointer });
  const of = (id) => ({ configurable: { thread_id: id }, recursionLimit: 10 });
  const stored = async (id) => (await agent.graph.getState(of(id))).values.messages ?? [];
  return {
    seed: async (id, n) => {
      if (n > 0) await agent.graph.updateState(of(id), { messages: history(n) }, "model_request");
    },
    call: async (id, text) => (await agent.invoke({ messages: [new HumanMessage(text)] }, of(id))).messages.at(-1).text,
    stream: async (id, text, onDelta) => {
      const chunks = await agent.stream({ messages: [new HumanMessage(text)] }, { ...of(id), streamMode: "messages" });
      for await (const [chunk] of chunks) if (chunk.text) onDelta(chunk.text);
    },
    messages: async (id) => (await stored(id)).map((message) => ({ role: roles[message.getType()], text: message.text })),
    bytes: () => serializer.bytes(),
    close,
  };
}

const roles = { human: "user", ai: "assistant", tool: "tool", system: "system" };

async function sqliteSaver(serializer) {
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
  const { default: Database } = await import("better-sqlite3");
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bench-"));
  const database = new Database(path.join(folder, "checkpoints.db"));
  const close = async () => {
    database.close();
    fs.rmSync(folder, { recursive: true, force: true });
  };
  return { checkpointer: new SqliteSaver(database, serializer), close };
}

async function overHttp(baseUrl) {
  const { ChatOpenAI } = await import("@langchain/openai");
  return new ChatOpenAI({ model: "m", apiKey: "a-key-of-usual-length", streaming: true, configuration: { baseURL: baseUrl } });
}

// The checkpointers' own serializer, with a count of the bytes that it makes.
class Counting {
  #own = new MemorySaver().serde;
  #bytes = 0;

  async dumpsTyped(value) {
    const [type, bytes] = await this.#own.dumpsTyped(value);
    this.#bytes += bytes.length;
    return [type, bytes];
  }

  loadsTyped(type, bytes) {
    return this.#own.loadsTyped(type, bytes);
  }

  bytes() {
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }
}

const called = () => ({ name: toolName, args: toolInput, id: newId(), type: "tool_call" });

function history(n) {
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const call = called();
    return [
      new HumanMessage({ id: newId(), content: question(at) }),
      new AIMessage({ id: newId(), content: "", tool_calls: [call] }),
      new ToolMessage({ id: newId(), content: toolOutput, tool_call_id: call.id, name: toolName }),
      new AIMessage({ id: newId(), content: answer }),
    ];
  }).flat();
}

class Scripted extends BaseChatModel {
  constructor(fields) {
    super(fields);
    this.script = fields.script;
  }

  _llmType() {
    return "script";
  }

  bindTools() {
    return this;
  }

  #next(messages) {
    return this.script.next(messages.at(-1).getType() === "tool", messages.filter((message) => message.getType() !== "system").length);
  }

  async _generate(messages) {
    const said = await this.#next(messages);
    const text = said.calls ? "" : said.text;
    const message = new AIMessage({ content: text, tool_calls: said.calls ? [called()] : [] });
    return { generations: [{ text, message }] };
  }

  async *_streamResponseChunks(messages, _options, runManager) {
    const said = await this.#next(messages);
    if (said.calls) {
      const { name, id } = called();
      const chunk = { name, id, args: JSON.stringify(toolInput), index: 0, type: "tool_call_chunk" };
      yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", tool_call_chunks: [chunk] }) });
      return;
    }
    for await (const text of said.pieces ?? [said.text]) {
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) });
      yield chunk;
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}
