// A small offline model with simple rules, for demos and tests without a key. It says that it is a demo.

import { LockgateError } from "../errors.js";
import { customModel } from "./custom.js";
import { textOf } from "../values/text.js";
import type { BlockOf, Model, ModelDelta, ModelRequest, Msg } from "../types.js";

type ToolSpec = ModelRequest["tools"][number];

/** Words in a question, and the names of tools that the model calls for them. */
const TOOL_WORDS: readonly (readonly [words: RegExp, names: readonly string[]])[] = [
  [/what time|the time|what date|what day|clock/, ["clock", "time", "date", "now"]],
  [/remember|note that/, ["memory_save", "remember", "save_note"]],
  [/recall|what do you know/, ["memory_search", "recall"]],
  [/(list|which|show)( the| my)? files/, ["list_files", "files", "ls"]],
  [/read( the)? file/, ["read_file"]],
  [/search for|look for/, ["session_search", "search"]],
  [/\badd\b|sum of|plus|calculate|how much is/, ["add", "sum", "calculate", "calculator"]],
  [/weather/, ["weather", "forecast"]],
  [/letter|\bmail\b/, ["send_letter", "send_mail"]],
  [/report|long result/, ["report"]],
  [/picture|image|draw/, ["picture"]],
  [/count|slow/, ["count_down"]],
  [/keeper/, ["ask_keeper"]],
  [/subagent|delegate/, ["agent_spawn"]],
  [/skill/, ["load_skill"]],
];

type DemoStep = readonly [name: string, input: unknown];

const TASKS = ["Close the lower gate", "Let the water in", "Open the upper gate"];

/** Sequences of tool calls. A call follows if the previous one succeeded. After the last one the model says `end`. */
const SEQUENCES: readonly (readonly [words: RegExp, steps: readonly DemoStep[], end: string])[] = [
  [
    /\bplan\b/,
    [
      ["plan_enter", {}],
      ["plan_write", { content: `# Lift a boat\n\n${TASKS.map((task, n) => `${n + 1}. ${task}`).join("\n")}\n` }],
      ["plan_exit", { summary: `Lift a boat in three steps: ${TASKS.join(", ").toLowerCase()}.` }],
    ],
    "The plan is approved, and I may act again.",
  ],
  [
    /\btasks?\b|to-?do/,
    [0, 1, 2, 3].map((n) => ["todo_write", { todos: TASKS.map((content, at) => ({ content, status: at < n ? "completed" : at === n ? "in_progress" : "pending" })) }] as const),
    "All three tasks are done; my list is at the side.",
  ],
];

const MARKDOWN = `## What I can set

| lock | lift | boats a day |
|:-----|-----:|:-----------:|
| Neptune | 8.0 m | 24 |
| Falkirk | 24.0 m | **40** |

1. *Emphasis*, \`code\` and [a link](https://example.org/).
2. A list in a list:
   - water in
   - water out

\`\`\`js
const next = await gate.open();
console.log(next);
\`\`\`

> The volume is $V = l \\cdot w \\cdot h$, and I leave maths as it is written.
`;

const LONG = [
  "A canal lock lifts boats one at a time. The gate behind a boat closes before the gate in front of it opens, so two boats are never in the chamber together. Lockgate does that for conversations.",
  "Every call on a session waits for the one before it and then has the session to itself. Calls on other sessions go on beside it, as other locks do along the same canal.",
  "What you say is stored before a model sees it. What is answered is stored before you are told that it is done. In between, a crash costs you at most the last second of the answer, never the question.",
  "The log of a session is only ever appended to. A summary stands in front of old messages, it does not replace them: what was said can be read again, word for word.",
  "Stop this answer whenever you like. The part that you have read stays, the rest is never asked for, and the next question finds the conversation in order.",
].join("\n\n");

/**
 * An offline model for demos and tests: deterministic, no network. Plain words make it call its tools ("what time is it",
 * "send a letter", "list files", "use <tool> …"), plan, work through tasks, answer at length, think, or call a tool that fails.
 */
export function demoModel(options: { readonly delayMs?: number } = {}): Model {
  const delayMs = options.delayMs ?? 0;
  if (!Number.isInteger(delayMs) || delayMs < 0) {
    throw new LockgateError("OPTIONS", "delayMs is not a number of milliseconds", { hint: "use a whole number of at least 0" });
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

function* answer({ system, messages: all, tools }: ModelRequest): Iterable<ModelDelta> {
  const messages = all.filter(({ metadata }) => metadata?.["reminder"] !== true);
  const questions = messages.filter((message) => message.role === "user" && message.name === undefined);
  const question = textOf(questions.at(-1) ?? []);
  if (/^You (condense|keep)/.test(system)) return yield* say(system.startsWith("You condense") ? summary(question) : "NONE");
  const asked = question.toLowerCase();
  const results = resultsAtTheEnd(messages);
  if (!/^(?:use|call) /.test(asked)) {
    const step = nextStep(asked, messages.slice(messages.lastIndexOf(questions.at(-1)!)), tools);
    if (typeof step === "string") return yield* say(step);
    if (step !== undefined) return yield* call(...step);
  }
  if (results.length > 0) return yield* say(results.map(describeResult).join("\n\n"));
  const tool = asked.includes("failing tool") ? failingTool(tools) : toolFor(asked, tools);
  if (tool !== undefined) return yield* call(tool.name, argumentsOf(question, tool));
  if (asked.includes("think")) {
    yield* words(`The user says “${question}”. I am a demo: I know no more than my rules. I can show how a thought is kept apart from an answer.`, "thinking");
    return yield* say("I have thought about it. As a demo model I have no opinion, but you can open my thoughts above.");
  }
  if (asked.includes("long")) return yield* say(LONG);
  if (/markdown|table/.test(asked)) return yield* say(MARKDOWN);
  if (/\bhelp\b|what can you/.test(asked)) return yield* say(help(tools));
  yield* say(introduction(questions.at(-1), questions.length, tools));
}

/** The next tool call of a sequence, or its closing text. Undefined if the question starts no sequence, or the last step failed. */
function nextStep(asked: string, since: readonly Msg[], tools: readonly ToolSpec[]): DemoStep | string | undefined {
  const sequence = SEQUENCES.find(([words, steps]) => words.test(asked) && steps.every(([name]) => tools.some((tool) => tool.name === name)));
  if (sequence === undefined || resultsAtTheEnd(since).some(({ state }) => state !== "success")) return undefined;
  const [, steps, end] = sequence;
  return steps[since.filter(({ role }) => role === "assistant").length] ?? end;
}

/** A summary with one line for each question. The record has the form `Human: …` and `AI: …`. */
function summary(record: string): string {
  const asked = [...record.matchAll(/^Human: (.{1,60})/gm)].map(([, text]) => `- “${text}”`);
  return `## SESSION INTENT\nTo see what the engine does.\n\n## SUMMARY\nThe user said:\n${asked.slice(-8).join("\n")}\n\n## ARTIFACTS\nNone\n\n## NEXT STEPS\nNone`;
}

/** The number of tools that the introduction names. */
const MAX_TOOLS_NAMED = 8;

function introduction(asked: Msg | undefined, nQuestions: number, tools: readonly ToolSpec[]): string {
  const greeting =
    nQuestions <= 1
      ? "Hello! I am **Lockgate's demo model**: a few rules, no network, no key."
      : `This is still the demo model, and that was message ${nQuestions} of yours in this session.`;
  const names = tools.map(({ name }) => `\`${name}\``);
  const others = names.length > MAX_TOOLS_NAMED ? ` and ${names.length - MAX_TOOLS_NAMED} more` : "";
  const able = tools.length === 0 ? "I have no tools here" : `My tools here are ${names.slice(0, MAX_TOOLS_NAMED).join(", ")}${others}`;
  const shown = asked?.content.some(({ type }) => type === "image") ? " I see that there is an image, but I cannot look at it." : "";
  const quoted = textOf(asked ?? []).split("\n", 1)[0] ?? "";
  return `${greeting} You said: “${quoted}”.${shown}\n\n${able}. Ask me *what time it is*, for a *long answer*, to *think* about something, or for a *failing tool*, and you will see what the engine does with it. Say *help* for all that I can.`;
}

/** What the user can say, what happens then, and the tool that is needed for it. */
const ABILITIES: readonly (readonly [say: string, then: string, needs?: string])[] = [
  ["what time is it", "a tool answers", "clock"],
  ["send a letter to Ada", "a tool asks you first", "send_letter"],
  ["count down from 5", "a slow tool shows what it does", "count_down"],
  ["write a long report", "a result too long for the model", "report"],
  ["draw a picture", "a tool answers with an image", "picture"],
  ["ask the keeper when it opens", "a tool waits for its result from you", "ask_keeper"],
  ["show me the failing tool", "a tool fails, and I read why"],
  ["work through your tasks", "a list of tasks at the side", "todo_write"],
  ["make a plan", "I plan, and you approve", "plan_exit"],
  ["remember that I like tea", "a note about you", "memory_save"],
  ["delegate the tour", "another agent works for me", "agent_spawn"],
  ["think about locks", "thoughts apart from the answer"],
  ["a long answer", "something to stop"],
  ["a table in markdown", "how an answer is set"],
  ["use <tool> {…}", "any tool, with the input you give"],
];

function help(tools: readonly ToolSpec[]): string {
  const rows = ABILITIES.filter(([, , needs]) => needs === undefined || tools.some(({ name }) => name === needs));
  return `I follow a few rules, offline. Say one of these:\n\n| say | and see |\n|---|---|\n${rows.map(([say, then]) => `| *${say}* | ${then} |`).join("\n")}\n`;
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

/** Longer results are cut in the answer. */
const MAX_RESULT_CHARS = 600;

function describeResult({ name, state, output }: BlockOf<"tool_result">): string {
  const what = state === "success" ? "answered" : "failed, and I can read why";
  const text = textOf(output);
  const shown = text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS)}…` : text;
  if (shown === "" && output.length > 0) return `The tool \`${name}\` ${what} with what you see above.`;
  return `The tool \`${name}\` ${what}: ${shown}`;
}

function failingTool(tools: readonly ToolSpec[]): ToolSpec {
  const broken = tools.find(({ name }) => name.includes("fail"));
  return broken ?? { name: "no_such_tool", description: "", inputSchema: {} };
}

function toolFor(asked: string, tools: readonly ToolSpec[]): ToolSpec | undefined {
  const named = /^(?:use|call) ([\w-]+)/.exec(asked)?.[1];
  const fitting = TOOL_WORDS.filter(([words]) => words.test(asked)).flatMap(([, names]) => names);
  const names = named === undefined ? fitting : [named, ...fitting];
  for (const name of names) {
    const found = tools.find((tool) => tool.name.toLowerCase() === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The input for a tool: the JSON object in the question, if it has one; else each required property gets a number or words of the question. */
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
  // The subagent "general-purpose" always exists, and a name is one word.
  const known: Record<string, string | undefined> = { agent_id: "general-purpose", name: topic.split(/\s+/).at(-1) };
  const input = (schema.required ?? []).map((name) => {
    if (Object.hasOwn(known, name)) return [name, known[name]] as const;
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
