// The pieces of an answer, from stored blocks or from events: text, thinking, notes, media and tool calls.
import { textOf } from "lockgate";
import type { AgentEvent, Block, BlockOf, Msg } from "lockgate";

export type MediaBlock = BlockOf<"image" | "audio" | "video" | "file">;

export type Part =
  | { readonly kind: "text" | "thinking" | "note"; readonly id: string; readonly text: string }
  | { readonly kind: "media"; readonly id: string; readonly media: MediaBlock }
  | ToolPart;

export interface ToolPart {
  readonly kind: "tool";
  readonly id: string;
  readonly name: string;
  /** The exact input; while it is still being written, only its text so far is known. */
  readonly input: unknown;
  readonly draft: string;
  /** What the tool shows while it runs. */
  readonly live: string;
  readonly output: string;
  readonly media: readonly MediaBlock[];
  readonly state: "writing" | BlockOf<"tool_use">["state"] | "running" | BlockOf<"tool_result">["state"];
  /** The message that holds the result. */
  readonly resultId: string;
}

export function isMedia(block: Block): block is MediaBlock {
  return "source" in block;
}

export function withMessage(parts: readonly Part[], message: Msg): readonly Part[] {
  if (message.role === "user" || message.role === "system") {
    return [...parts, { kind: "note", id: message.id, text: textOf(message) }];
  }
  return message.content.reduce((now, block) => withBlock(now, block, message.id), parts);
}

function withBlock(parts: readonly Part[], block: Block, messageId: string): readonly Part[] {
  const id = String(parts.length);
  switch (block.type) {
    case "text":
      return [...parts, { kind: "text", id, text: block.text }];
    case "thinking":
      return [...parts, { kind: "thinking", id, text: block.thinking }];
    case "tool_use": {
      const { name, input, state } = block;
      return withTool(parts, block.id, { name, input, state });
    }
    case "tool_result":
      return withTool(parts, block.id, { ...resultOf(block), resultId: messageId });
    default:
      return isMedia(block) ? [...parts, { kind: "media", id, media: block }] : parts;
  }
}

function resultOf(block: Pick<BlockOf<"tool_result">, "name" | "state" | "output">) {
  const { name, state, output } = block;
  return { name, state, output: textOf(output), media: output.filter(isMedia) };
}

/** What a running tool shows: more text, or a newer state of its image. */
function shownBy(tool: ToolPart, { delta, block }: AgentEvent & { type: "tool-delta" }): Partial<ToolPart> {
  if (block !== undefined && isMedia(block)) return { media: [block] };
  return { live: tool.live + (block === undefined ? delta : textOf([block])) };
}

/** The parts after one more event of their call. */
export function withEvent(parts: readonly Part[], event: AgentEvent): readonly Part[] {
  switch (event.type) {
    case "text-start":
      return [...parts, { kind: "text", id: event.id, text: "" }];
    case "thinking-start":
      return [...parts, { kind: "thinking", id: event.id, text: "" }];
    case "text-delta":
      return withDelta(parts, "text", event);
    case "thinking-delta":
      return withDelta(parts, "thinking", event);
    case "tool-call-start":
      return withTool(parts, event.toolCallId, { name: event.name });
    case "tool-call-delta":
      return withTool(parts, event.toolCallId, (tool) => ({ draft: tool.draft + event.delta }));
    case "tool-call-end": {
      const { name, input } = event;
      return withTool(parts, event.toolCallId, { name, input, state: "pending" });
    }
    case "tool-start":
      return withTool(parts, event.toolCallId, { name: event.name, state: "running" });
    case "tool-delta":
      return withTool(parts, event.toolCallId, (tool) => shownBy(tool, event));
    case "tool-end":
      return withTool(parts, event.toolCallId, resultOf(event));
    case "ask":
      return event.asks.reduce(
        (now, ask) => withTool(now, ask.toolCallId, { name: ask.name, state: "asking" }),
        parts,
      );
    default:
      // Other events, also those of later versions, make no part.
      return parts;
  }
}

/** Adds a delta to the newest part with its id, because a later step of the call may use the same id again. */
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

type ToolChange = Partial<ToolPart> | ((tool: ToolPart) => Partial<ToolPart>);

function withTool(parts: readonly Part[], id: string, change: ToolChange): readonly Part[] {
  const at = parts.findLastIndex((part) => part.kind === "tool" && part.id === id);
  const found = parts[at];
  const tool: ToolPart = found?.kind === "tool" ? found : { ...unknownTool, id };
  const next = { ...tool, ...(typeof change === "function" ? change(tool) : change) };
  return at < 0 ? [...parts, next] : parts.with(at, next);
}

const unknownTool: ToolPart = {
  kind: "tool",
  id: "",
  name: "",
  input: undefined,
  draft: "",
  live: "",
  output: "",
  media: [],
  state: "writing",
  resultId: "",
};
