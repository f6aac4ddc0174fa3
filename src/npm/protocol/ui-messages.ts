// Messages as clients of the AI SDK show them: one message per turn, with the tool calls in it.

import type { Block, BlockOf, Media, Msg } from "../types.js";
import { textOf } from "../values/text.js";
import { outputOf } from "./ui-chunks.js";

/** A message of the AI SDK's UI. */
export interface UiMessage {
  /** The id of the first of our messages in it. */
  readonly id: string;
  /** The author. Notes of the engine are "system". */
  readonly role: "user" | "assistant" | "system";
  /** The parts of the message: text, reasoning, files and tool calls with their results. */
  // `any`, because clients have their own types for the parts of their tools.
  readonly parts: readonly any[];
  /** The time (`at`) and the usage of the message, with its own metadata. */
  readonly metadata?: unknown;
}

type ShownPart = Readonly<Record<string, unknown>>;

/** Turns `history` into what `useChat({ messages })` takes. */
export function toUiMessages(messages: readonly Msg[]): UiMessage[] {
  const results = new Map<string, BlockOf<"tool_result">>();
  for (const block of messages.flatMap(({ content }) => content)) if (block.type === "tool_result") results.set(block.id, block);
  const shown: { id: string; role: UiMessage["role"]; parts: ShownPart[]; metadata: unknown }[] = [];
  for (const message of messages) {
    // Results are in the parts of their tool calls.
    if (message.role === "tool") continue;
    const role = message.role === "user" && message.name === "system" ? "system" : message.role;
    const last = shown.at(-1);
    const parts = message.content.flatMap((block) => partsOf(block, results));
    if (role !== "assistant") shown.push({ id: message.id, role, parts, metadata: about(message) });
    else if (last?.role === "assistant") last.parts.push({ type: "step-start" }, ...parts);
    else shown.push({ id: message.id, role, parts: [{ type: "step-start" }, ...parts], metadata: about(message) });
  }
  return shown;
}

function about({ at, usage, metadata }: Msg): unknown {
  return { ...metadata, at, ...(usage === undefined ? {} : { usage }) };
}

function partsOf(block: Block, results: ReadonlyMap<string, BlockOf<"tool_result">>): ShownPart[] {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, state: "done" }];
    case "thinking":
      return [{ type: "reasoning", text: block.thinking, state: "done" }];
    case "tool_use":
      return [{ type: `tool-${block.name}`, toolCallId: block.id, input: block.input, ...stateOf(block, results.get(block.id)) }];
    case "tool_result":
      return [];
    default:
      return [fileOf(block)];
  }
}

function stateOf({ id, state }: BlockOf<"tool_use">, result: BlockOf<"tool_result"> | undefined): ShownPart {
  if (result !== undefined && result.state !== "suspended") return outcomeOf(id, result);
  if (state === "asking") return { state: "approval-requested", approval: { id } };
  if (state === "allowed") return { state: "approval-responded", approval: { id, approved: true } };
  return { state: "input-available" };
}

function outcomeOf(id: string, { state, output }: BlockOf<"tool_result">): ShownPart {
  if (state === "success") return { state: "output-available", output: outputOf(output) };
  if (state === "denied") return { state: "output-denied", approval: { id, approved: false, reason: textOf(output) } };
  return { state: "output-error", errorText: textOf(output) };
}

function fileOf({ source, name, type }: Media<"image" | "audio" | "video" | "file">): ShownPart {
  const mediaType = source.mediaType ?? (type === "file" ? "application/octet-stream" : `${type}/*`);
  const url = source.type === "url" ? source.url : `data:${mediaType};base64,${source.data}`;
  return { type: "file", mediaType, url, ...(name === undefined ? {} : { filename: name }) };
}
