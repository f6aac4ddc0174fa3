// A question and what came back, as the page shows it: from stored messages or from events.
import { LockgateError, textOf } from "lockgate";
import type { AgentEvent, AgentEventOf, Block, BlockOf, Msg, Reason } from "lockgate";

export interface Turn {
  readonly key: string;
  readonly question: string;
  readonly at: string;
  readonly parts: readonly Part[];
  readonly progress: "sending" | "queued" | "running" | "ended";
  readonly nAhead: number;
  /** The question is stored: whatever fails now, it is in the log. */
  readonly accepted: boolean;
  readonly reason: Reason | null;
  readonly problem: Problem | null;
}

export type Part =
  | { readonly kind: "text"; readonly id: string; readonly text: string }
  | { readonly kind: "thinking"; readonly id: string; readonly text: string }
  | { readonly kind: "note"; readonly id: string; readonly text: string }
  | ToolPart;

export interface ToolPart {
  readonly kind: "tool";
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly output: string;
  readonly state: "asked" | "running" | BlockOf<"tool_result">["state"];
}

export interface Problem {
  readonly message: string;
  readonly hint: string;
}

/** A question that was just sent. */
export function asked(question: string): Turn {
  const at = new Date().toISOString();
  return { ...blank, key: crypto.randomUUID(), question, at, progress: "sending" };
}

/** The turns of a stored conversation, oldest first. */
export function turnsOf(messages: readonly Msg[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last && !isQuestion(message)) {
      turns[turns.length - 1] = { ...last, parts: withMessage(last.parts, message) };
      continue;
    }
    const turn = { ...blank, key: message.id, at: message.at, accepted: true };
    if (isQuestion(message)) turns.push({ ...turn, question: textOf(message) });
    else turns.push({ ...turn, parts: withMessage([], message) });
  }
  return turns;
}

/** The turn after one more event of its call. */
export function heard(turn: Turn, event: AgentEvent): Turn {
  switch (event.type) {
    case "queued":
      return { ...turn, progress: "queued", nAhead: event.ahead };
    case "accepted":
      return { ...turn, progress: "running", accepted: true, at: event.messages[0]?.at ?? turn.at };
    case "model-start":
      return { ...turn, progress: "running" };
    case "text-delta":
      return { ...turn, parts: withDelta(turn.parts, "text", event) };
    case "thinking-delta":
      return { ...turn, parts: withDelta(turn.parts, "thinking", event) };
    case "text-start":
    case "thinking-start": {
      const kind = event.type === "text-start" ? "text" : "thinking";
      return { ...turn, parts: [...turn.parts, { kind, id: event.id, text: "" }] };
    }
    case "tool-call-start":
    case "tool-call-end":
    case "tool-start":
    case "tool-end":
      return { ...turn, parts: withTool(turn.parts, event.toolCallId, toolChange(event)) };
    case "call-end": {
      // What is stored is what stays on the page, so that a reload changes nothing.
      const parts = event.reply.messages.filter((m) => !isQuestion(m)).reduce(withMessage, noParts);
      return { ...turn, parts, progress: "ended", accepted: true, reason: event.reply.reason };
    }
    default:
      // The union may grow, and this page shows nothing of the rest.
      return turn;
  }
}

export function failed(turn: Turn, error: unknown): Turn {
  return { ...turn, progress: "ended", problem: problemOf(error) };
}

export function problemOf(error: unknown): Problem {
  if (LockgateError.isInstance(error)) return { message: error.message, hint: error.hint ?? "" };
  return { message: error instanceof Error ? error.message : String(error), hint: "" };
}

const noParts: readonly Part[] = [];
const blank: Turn = {
  key: "",
  question: "",
  at: "",
  parts: noParts,
  progress: "ended",
  nAhead: 0,
  accepted: false,
  reason: null,
  problem: null,
};

/** The engine's own notes are user messages too, by the name `system`. */
function isQuestion(message: Msg): boolean {
  return message.role === "user" && message.name !== "system";
}

function withMessage(parts: readonly Part[], message: Msg): readonly Part[] {
  if (message.role !== "user" && message.role !== "system") {
    return message.content.reduce(withBlock, parts);
  }
  return [...parts, { kind: "note", id: message.id, text: textOf(message) }];
}

function withBlock(parts: readonly Part[], block: Block): readonly Part[] {
  const id = String(parts.length);
  switch (block.type) {
    case "text":
      return [...parts, { kind: "text", id, text: block.text }];
    case "thinking":
      return [...parts, { kind: "thinking", id, text: block.thinking }];
    case "tool_use":
      return withTool(parts, block.id, { name: block.name, input: json(block.input) });
    case "tool_result":
      return withTool(parts, block.id, {
        name: block.name,
        output: textOf(block.output),
        state: block.state,
      });
    default:
      return [...parts, { kind: "note", id, text: `${block.type}: ${block.name ?? "unnamed"}` }];
  }
}

/** Ids may come again in a later step of the same call, so the newest part of that id is meant. */
function withDelta(
  parts: readonly Part[],
  kind: "text" | "thinking",
  event: { readonly id: string; readonly delta: string },
): readonly Part[] {
  const at = parts.findLastIndex((part) => part.kind === kind && part.id === event.id);
  const part = parts[at];
  if (part?.kind !== kind) return [...parts, { kind, id: event.id, text: event.delta }];
  return parts.with(at, { ...part, text: part.text + event.delta });
}

function withTool(parts: readonly Part[], id: string, change: Partial<ToolPart>): readonly Part[] {
  const at = parts.findLastIndex((part) => part.kind === "tool" && part.id === id);
  const part = parts[at];
  if (part?.kind === "tool") return parts.with(at, { ...part, ...change });
  return [
    ...parts,
    { kind: "tool", id, name: "", input: "", output: "", state: "asked", ...change },
  ];
}

function toolChange(
  event: AgentEventOf<"tool-call-start" | "tool-call-end" | "tool-start" | "tool-end">,
): Partial<ToolPart> {
  const { name } = event;
  switch (event.type) {
    case "tool-call-start":
      return { name };
    case "tool-call-end":
      return { name, input: json(event.input) };
    case "tool-start":
      return { name, state: "running" };
    case "tool-end":
      return { name, state: event.state, output: textOf(event.output) };
  }
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
