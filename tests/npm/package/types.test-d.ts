// The public types. Compiled against the installed package by types.test.mjs, never run.
import {
  LockgateError,
  createAgent,
  customModel,
  demoModel,
  memoryStore,
  textOf,
  tool,
} from "lockgate";
import { scriptedModel } from "lockgate/testing";
import type {
  Agent,
  AgentEvent,
  AgentEventOf,
  AgentOptions,
  Block,
  BlockOf,
  Call,
  ErrorCode,
  InferSchema,
  ModelDelta,
  Msg,
  Reply,
  StandardSchema,
  Store,
  Tool,
  ToolInfo,
} from "lockgate";

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<T extends true>(): void;

declare const model: AgentOptions["model"];
declare const agent: Agent;
declare const event: AgentEvent;
declare const result: BlockOf<"tool_result">;
declare const place: StandardSchema<
  { city: string; days?: string },
  { city: string; days: number }
>;

// ---------------------------------------------------------------- tools

export const forecast: Tool = tool({
  name: "forecast",
  description: "the weather",
  inputSchema: place,
  execute(input, context) {
    holds<Same<typeof input, { city: string; days: number }>>();
    holds<Same<typeof context.signal, AbortSignal>>();
    context.emit(input.city);
    // @ts-expect-error only text is emitted
    context.emit(input.days);
    // @ts-expect-error there is no such member
    return input.town;
  },
});

holds<Same<InferSchema<typeof place>, { city: string; days: number }>>();
holds<Same<InferSchema<{ type: "object" }>, unknown>>();
holds<Same<InferSchema<never>, undefined>>();

tool({
  name: "plain",
  description: "JSON Schema has no types",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
  execute(input) {
    holds<Same<typeof input, Record<string, unknown>>>();
    return null;
  },
});

tool<{ city: string }>({
  name: "told",
  description: "the caller says what the input is",
  inputSchema: { type: "object" },
  execute: ({ city }) => city.toUpperCase(),
});

// @ts-expect-error a tool has a description
tool({ name: "bare", inputSchema: { type: "object" }, execute: () => 1 });
// @ts-expect-error a schema of JSON Schema has a type
tool({ name: "bare", description: "x", inputSchema: {}, execute: () => 1 });
// @ts-expect-error a plain object is not a tool
export const fake: Tool = { name: "fake" };

// ---------------------------------------------------------------- options

export const made: Promise<Agent> = createAgent({
  name: "helper",
  model: demoModel(),
  tools: [forecast],
  store: memoryStore(),
});

// @ts-expect-error an agent has a name
createAgent({ model });
// @ts-expect-error an agent has a model
createAgent({ name: "helper" });
// @ts-expect-error the option is systemPrompt
createAgent({ name: "helper", model, sytemPrompt: "x" });
// @ts-expect-error the option is a number
createAgent({ name: "helper", model, maxIterations: "3" });
// @ts-expect-error the option is a list of tools
createAgent({ name: "helper", model, tools: forecast });
// @ts-expect-error a plain object is not a model
createAgent({ name: "helper", model: { id: "mine" } });
// @ts-expect-error a tool is not a model
createAgent({ name: "helper", model: forecast });
// @ts-expect-error a store has three methods
createAgent({ name: "helper", model, store: { name: "mine" } });
// @ts-expect-error the option is delayMs
demoModel({ delay: 5 });

const options: AgentOptions = { name: "helper", model };
// @ts-expect-error options are read only
options.name = "other";

// ---------------------------------------------------------------- calls

const reply = await agent.call("hello", {
  sessionId: "s",
  userId: null,
  signal: new AbortController().signal,
});
holds<Same<typeof reply.message, Msg>>();
holds<Same<typeof reply.text, string>>();
export const kept: Reply = reply;
await agent.call({ content: [{ type: "text", text: "hello" }] }, { sessionId: "s" });
await agent.call([{ content: "a" }, { role: "user", content: "b", metadata: { any: 1 } }], {
  sessionId: "s",
  callId: "c",
});
await agent.call("with a default session");

// @ts-expect-error a number is not an input
agent.call(5, { sessionId: "s" });
// @ts-expect-error only user messages are allowed
agent.call({ role: "assistant", content: "I" }, { sessionId: "s" });
// @ts-expect-error a caller cannot send tool results
agent.call({ content: [result] }, { sessionId: "s" });
// @ts-expect-error the option is sessionId
agent.call("hello", { session: "s" });
// @ts-expect-error an id is text
agent.call("hello", { sessionId: 5 });
// @ts-expect-error a slot has a session
agent.history({ userId: "alice" });
// @ts-expect-error messages are read only
reply.messages.push(reply.message);
// @ts-expect-error their texts are read only too
reply.text = "other";

// ---------------------------------------------------------------- methods

const tools = (await agent.tools()) ?? (await agent.tools({ sessionId: "s" }));
holds<Same<typeof tools, readonly ToolInfo[]>>();
// @ts-expect-error a session is named by a slot
agent.tools("s");

// ---------------------------------------------------------------- events

const call: Call = agent.stream("hello", { sessionId: "s" });
for await (const each of call) {
  holds<Same<typeof each, AgentEvent>>();
  if (each.type === "text-delta") holds<Same<typeof each.delta, string>>();
}
holds<Same<Awaited<typeof call.result>, Reply>>();
call.stop("Shorter, please.");
export const stream: ReadableStream<AgentEvent> = call.toReadableStream();

switch (event.type) {
  case "text-delta":
    holds<Same<typeof event.delta, string>>();
    // @ts-expect-error a delta has no reply
    event.reply;
    break;
  case "call-end":
    holds<Same<typeof event.reply, Reply>>();
    break;
  case "error":
    holds<Same<typeof event.error.code, ErrorCode>>();
    break;
  case "tool-end":
    holds<Same<typeof event.output, readonly Block[]>>();
    break;
  // @ts-expect-error there is no such event
  case "text":
    break;
}
holds<Same<typeof event.seq, number>>();

export const end = (last: AgentEventOf<"call-end">): Reply => last.reply;
export const delta = (one: AgentEventOf<"text-delta" | "thinking-delta">): string => one.delta;
holds<Same<AgentEventOf<"saved">["type"], "saved">>();
// @ts-expect-error there is no such event
export type Nothing = AgentEventOf<"finished">;

export const image = (block: BlockOf<"image">): string => block.source.type;
export const words: string = textOf(reply.message) + textOf(reply.message.content);

// ---------------------------------------------------------------- errors, models, stores

export function explain(error: unknown): string {
  if (!LockgateError.isInstance(error)) return "not ours";
  holds<Same<typeof error.code, ErrorCode>>();
  holds<Same<typeof error.partial, Msg | undefined>>();
  // @ts-expect-error there is no such code
  if (error.code === "OOPS") return "never";
  return `${error.message} ${error.hint ?? ""} ${error.status} ${error.retryable}`;
}

customModel({
  id: "mine",
  async *generate(request, { signal }): AsyncGenerator<ModelDelta> {
    holds<Same<typeof request.messages, readonly Msg[]>>();
    signal.throwIfAborted();
    yield { type: "text", text: request.system };
    yield { type: "finish", reason: "stop" };
  },
});
customModel({
  id: "wrong",
  // @ts-expect-error there is no such delta
  async *generate() {
    yield { type: "song", notes: "la" };
  },
});

export const mine: Store = {
  name: "mine",
  capabilities: memoryStore().capabilities,
  get: async (keys) => keys.map(() => null),
  list: async () => [],
  commit: async ({ put }) => (put.length > 0 ? "ok" : "conflict"),
};
// @ts-expect-error a commit answers ok or conflict
export const wrong: Store = { ...mine, commit: async () => true };

const script = scriptedModel([
  "hello",
  { text: "and", toolCalls: [{ name: "clock", input: {} }] },
  new Error("no"),
]);
createAgent({ name: "helper", model: script });
holds<Same<(typeof script.requests)[number]["system"], string>>();
