// A session's messages as the AI SDK's clients show them: one message a turn, with the tools in it.

import type { Block, BlockOf, Media, Msg } from "./types.js";
import { textOf } from "./text.js";
import { outputOf } from "./ui-chunks.js";

/** A message of the AI SDK's UI. */
export interface UiMessage {
  readonly id: string;
  readonly role: "user" | "assistant" | "system";
  // The contract leaves it open: clients have types of their own for the parts of their tools.
  readonly parts: readonly any[];
  readonly metadata?: unknown;
}

type Part = Readonly<Record<string, unknown>>;

/** Turns `history` into what `useChat({ messages })` takes. */
export function toUiMessages(messages: readonly Msg[]): UiMessage[] {
  const results = new Map<string, BlockOf<"tool_result">>();
  for (const block of messages.flatMap(({ content }) => content)) if (block.type === "tool_result") results.set(block.id, block);
  const shown: { id: string; role: UiMessage["role"]; parts: Part[]; metadata: unknown }[] = [];
  for (const message of messages) {
    // Results stand in the parts of their calls.
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

function partsOf(block: Block, results: ReadonlyMap<string, BlockOf<"tool_result">>): Part[] {
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

function stateOf({ id, state }: BlockOf<"tool_use">, result: BlockOf<"tool_result"> | undefined): Part {
  if (result !== undefined && result.state !== "suspended") return outcomeOf(id, result);
  if (state === "asking") return { state: "approval-requested", approval: { id } };
  if (state === "allowed") return { state: "approval-responded", approval: { id, approved: true } };
  return { state: "input-available" };
}

function outcomeOf(id: string, { state, output }: BlockOf<"tool_result">): Part {
  if (state === "success") return { state: "output-available", output: outputOf(output) };
  if (state === "denied") return { state: "output-denied", approval: { id, approved: false, reason: textOf(output) } };
  return { state: "output-error", errorText: textOf(output) };
}

function fileOf({ source, name, type }: Media<"image" | "audio" | "video" | "file">): Part {
  const mediaType = source.mediaType ?? (type === "file" ? "application/octet-stream" : `${type}/*`);
  const url = source.type === "url" ? source.url : `data:${mediaType};base64,${source.data}`;
  return { type: "file", mediaType, url, ...(name === undefined ? {} : { filename: name }) };
}
