// A small offline model that follows simple rules, so that demos and tests need no key. It says what it is.

import { LockgateError } from "./errors.js";
import { customModel } from "./models.js";
import { textOf } from "./text.js";
import type { BlockOf, Model, ModelDelta, ModelRequest, Msg } from "./types.js";

type ToolSpec = ModelRequest["tools"][number];

/** Plain words, and the names of tools that they ask for. */
const WISHES: readonly (readonly [wish: RegExp, names: readonly string[]])[] = [
  [/what time|the time|what date|what day|clock/, ["clock", "time", "date", "now"]],
  [/remember|note that/, ["memory_save", "remember", "save_note"]],
  [/recall|what do you know/, ["memory_search", "recall"]],
  [/(list|which|show)( the| my)? files/, ["list_files", "files", "ls"]],
  [/read( the)? file/, ["read_file"]],
  [/search for|look for/, ["session_search", "search"]],
  [/\badd\b|sum of|plus|calculate|how much is/, ["add", "sum", "calculate", "calculator"]],
  [/weather/, ["weather", "forecast"]],
];

const LONG = [
  "A canal lock lifts boats one at a time. The gate behind a boat closes before the gate in front of it opens, so two boats are never in the chamber together. Lockgate does that for conversations.",
  "Every call on a session waits for the one before it and then has the session to itself. Calls on other sessions go on beside it, as other locks do along the same canal.",
  "What you say is stored before a model sees it. What is answered is stored before you are told that it is done. In between, a crash costs you the answer, never the question.",
  "The log of a session is only ever appended to. A summary stands in front of old messages, it does not replace them: what was said can be read again, word for word.",
  "Stop this answer whenever you like. The part that you have read stays, the rest is never asked for, and the next question finds the conversation in order.",
].join("\n\n");

/**
 * An offline model for demos and tests: deterministic, no network. Asked in plain words it calls the tools it is given
 * ("what time is it", "remember …", "list files", "use <tool> …"), answers at length, thinks, or calls a tool that fails.
 */
export function demoModel(options: { readonly delayMs?: number } = {}): Model {
  const delayMs = options.delayMs ?? 0;
  if (!Number.isInteger(delayMs) || delayMs < 0) {
    throw new LockgateError("OPTIONS", "delayMs is not a number of milliseconds", { hint: "give a whole number from 0 on" });
  }
  return customModel({
    id: "demo",
    async *generate(request, { signal }) {
      for (const delta of answer(request)) {
        if (delayMs > 0) await pause(delayMs, signal);
        yield delta;
      }
    },
  });
}

function* answer({ messages: all, tools }: ModelRequest): Iterable<ModelDelta> {
  const messages = all.filter(({ metadata }) => metadata?.["reminder"] !== true);
  const results = resultsAtTheEnd(messages);
  if (results.length > 0) return yield* say(results.map(retell).join("\n\n"));
  const questions = messages.filter((message) => message.role === "user" && message.name === undefined);
  const question = textOf(questions.at(-1) ?? []);
  const asked = question.toLowerCase();
  const wished = asked.includes("failing tool") ? failing(tools) : wishedTool(asked, tools);
  if (wished !== undefined) return yield* call(wished.name, argumentsOf(question, wished));
  if (asked.includes("think")) {
    yield* words(`The user says “${question}”. I am a demo: I know no more than my rules. I can show how a thought is kept apart from an answer.`, "thinking");
    return yield* say("I have thought about it. As a demo model I have no opinion, but you can open my thoughts above.");
  }
  if (asked.includes("long")) return yield* say(LONG);
  yield* say(chat(question, questions.length, tools));
}

function chat(question: string, nQuestions: number, tools: readonly ToolSpec[]): string {
  const greeting =
    nQuestions <= 1
      ? "Hello! I am **Lockgate's demo model**: a few rules, no network, no key."
      : `This is still the demo model, and that was message ${nQuestions} of yours in this session.`;
  const able = tools.length === 0 ? "I have no tools here" : `My tools here are ${tools.map(({ name }) => `\`${name}\``).join(", ")}`;
  const quoted = question.split("\n", 1)[0] ?? "";
  return `${greeting} You said: “${quoted}”.\n\n${able}. Ask me *what time it is*, for a *long answer*, to *think* about something, or for a *failing tool*, and you will see what the engine does with it.`;
}

function* say(text: string): Iterable<ModelDelta> {
  yield* words(text, "text");
  yield { type: "usage", usage: { outputTokens: text.split(/\s+/).length } };
  yield { type: "finish", reason: "stop" };
}

function* words(text: string, type: "text" | "thinking"): Iterable<ModelDelta> {
  for (const word of text.match(/\S*\s*/g) ?? []) if (word !== "") yield { type, text: word };
}

function* call(name: string, input: unknown): Iterable<ModelDelta> {
  yield { type: "tool-call", index: 0, name, arguments: JSON.stringify(input) };
  yield { type: "finish", reason: "tool-calls" };
}

/** The results that the model has not spoken about yet. */
function resultsAtTheEnd(messages: readonly Msg[]): readonly BlockOf<"tool_result">[] {
  const first = messages.findLastIndex((message) => message.role !== "tool") + 1;
  return messages.slice(first).flatMap(({ content }) => content.filter((block) => block.type === "tool_result"));
}

function retell({ name, state, output }: BlockOf<"tool_result">): string {
  const what = state === "success" ? "answered" : "failed, and I can read why";
  return `The tool \`${name}\` ${what}: ${textOf(output)}`;
}

function failing(tools: readonly ToolSpec[]): ToolSpec {
  const broken = tools.find(({ name }) => name.includes("fail"));
  return broken ?? { name: "no_such_tool", description: "", inputSchema: {} };
}

function wishedTool(asked: string, tools: readonly ToolSpec[]): ToolSpec | undefined {
  const named = /^(?:use|call) ([\w-]+)/.exec(asked)?.[1];
  const wishes = WISHES.filter(([wish]) => wish.test(asked)).flatMap(([, names]) => names);
  const names = named === undefined ? wishes : [named, ...wishes];
  for (const name of names) {
    const found = tools.find((tool) => tool.name.toLowerCase() === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Fills in what the tool requires: a JSON object in the question as it is, numbers from its numbers, texts with its words. */
function argumentsOf(question: string, tool: ToolSpec): unknown {
  const given = /\{.*\}/s.exec(question)?.[0];
  if (given !== undefined) return parsed(given) ?? {};
  const schema = tool.inputSchema as { required?: readonly string[]; properties?: Record<string, { type?: string } | undefined> };
  const numbers = (question.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
  const topic = question.replace(/^\S+\s+/, "");
  const fill: Record<string, () => unknown> = {
    number: () => numbers.shift() ?? 1,
    integer: () => Math.trunc(numbers.shift() ?? 1),
    boolean: () => true,
    array: () => [topic],
    object: () => ({}),
  };
  const input = (schema.required ?? []).map((name) => {
    const type = schema.properties?.[name]?.type ?? "string";
    return [name, fill[type]?.() ?? topic] as const;
  });
  return Object.fromEntries(input);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const wake = (): void => (clearTimeout(timer), resolve());
    signal.addEventListener("abort", wake, { once: true });
  });
}
