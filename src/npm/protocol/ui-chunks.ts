// Our events as chunks of the AI SDK's UI message stream, version 1.

import type { AgentEvent, Block, Reason } from "../types.js";
import { textOf } from "../values/text.js";

/** A chunk of the stream. Its type determines its other members. */
export interface UiChunk {
  /** What the chunk is. */
  readonly type: string;
  /** The other members, which depend on the type. */
  readonly [member: string]: unknown;
}

const FINISH: Readonly<Record<Reason, string>> = {
  stop: "stop",
  asking: "tool-calls",
  suspended: "tool-calls",
  interrupted: "other",
  "max-iterations": "other",
  length: "length",
  middleware: "other",
  empty: "other",
};

/** Turns the events of one call into chunks, in order. */
export class UiChunks {
  #started = false;
  #inStep = false;
  readonly #said = new Map<string, string>();

  /** The chunks of the next event. */
  of(event: AgentEvent): UiChunk[] {
    const chunks = this.#chunks(event);
    // After an answer to an ask the message continues: without `start` the client keeps the parts that it has.
    if (event.type === "answered") this.#started = true;
    if (this.#started || chunks.length === 0) return chunks;
    this.#started = true;
    return [{ type: "start", messageMetadata: { callId: event.callId } }, ...chunks];
  }

  #chunks(event: AgentEvent): UiChunk[] {
    switch (event.type) {
      case "model-start":
        return [...this.#endStep(), ...this.#beginStep()];
      case "text-start":
      case "text-end":
        return [{ type: event.type, id: event.id }];
      case "text-delta":
        return [{ type: "text-delta", id: event.id, delta: event.delta }];
      case "thinking-start":
        return [{ type: "reasoning-start", id: event.id }];
      case "thinking-delta":
        return [{ type: "reasoning-delta", id: event.id, delta: event.delta }];
      case "thinking-end":
        return [{ type: "reasoning-end", id: event.id }];
      case "tool-call-start":
        return [{ type: "tool-input-start", toolCallId: event.toolCallId, toolName: event.name }];
      case "tool-call-delta":
        return [{ type: "tool-input-delta", toolCallId: event.toolCallId, inputTextDelta: event.delta }];
      case "tool-call-end":
        return [{ type: "tool-input-available", toolCallId: event.toolCallId, toolName: event.name, input: event.input }];
      case "tool-delta":
        return [event.block === undefined ? this.#preliminary(event.toolCallId, event.delta) : { type: "tool-output-available", toolCallId: event.toolCallId, output: outputOf([event.block]), preliminary: true }];
      case "tool-end":
        return resultOf(event.toolCallId, event.state, event.output);
      case "ask":
        return event.asks
          .filter(({ kind }) => kind === "approval")
          .map(({ toolCallId, reason }) => ({ type: "tool-approval-request", approvalId: toolCallId, toolCallId, ...(reason === "" ? {} : { reason }) }));
      case "error":
        return [aside(event), { type: "error", errorText: event.error.message }];
      case "call-end": {
        const { reason, usage, version } = event.reply;
        return [...this.#endStep(), { type: "finish", finishReason: FINISH[reason] ?? "other", messageMetadata: { reason, usage, version } }];
      }
      case "call-start":
      case "queued":
      case "accepted":
      case "answered":
      case "model-end":
      case "tool-start":
        return [];
      default:
        return [aside(event)];
    }
  }

  #beginStep(): UiChunk[] {
    this.#inStep = true;
    return [{ type: "start-step" }];
  }

  #endStep(): UiChunk[] {
    if (!this.#inStep) return [];
    this.#inStep = false;
    return [{ type: "finish-step" }];
  }

  /** Everything that a tool has emitted so far. Each of these chunks replaces the previous one. */
  #preliminary(toolCallId: string, delta: string): UiChunk {
    const output = (this.#said.get(toolCallId) ?? "") + delta;
    this.#said.set(toolCallId, output);
    return { type: "tool-output-available", toolCallId, output, preliminary: true };
  }
}

/** Chunks from which a client rebuilds the parts of a message that it lost. */
export function again(id: string, parts: readonly Readonly<Record<string, unknown>>[]): UiChunk[] {
  return [{ type: "start", messageId: id }, ...parts.flatMap((part, index) => partAgain(part, `again-${index}`))];
}

function partAgain(part: Readonly<Record<string, unknown>>, id: string): UiChunk[] {
  const { type, text, toolCallId, input, state, approval, output, errorText } = part;
  if (type === "step-start") return [{ type: "start-step" }];
  if (type === "text" || type === "reasoning") return [{ type: `${type}-start`, id }, { type: `${type}-delta`, id, delta: text }, { type: `${type}-end`, id }];
  if (typeof type !== "string" || !type.startsWith("tool-")) return [part as UiChunk];
  const call = { type: "tool-input-available", toolCallId, toolName: type.slice("tool-".length), input };
  if (state === "approval-requested") return [call, { type: "tool-approval-request", toolCallId, approvalId: (approval as { id: string }).id }];
  if (state === "output-available") return [call, { type: "tool-output-available", toolCallId, output }];
  if (state === "output-error") return [call, { type: "tool-output-error", toolCallId, errorText }];
  return state === "output-denied" ? [call, { type: "tool-output-denied", toolCallId }] : [call];
}

/** An event that the protocol does not know: sent as transient data, which the client does not keep in the message. */
function aside(event: AgentEvent): UiChunk {
  return { type: "data-lockgate", data: event, transient: true };
}

function resultOf(toolCallId: string, state: string, output: readonly Block[]): UiChunk[] {
  if (state === "success") return [{ type: "tool-output-available", toolCallId, output: outputOf(output) }];
  if (state === "denied") return [{ type: "tool-output-denied", toolCallId }];
  // The client sends the result later.
  if (state === "suspended") return [];
  return [{ type: "tool-output-error", toolCallId, errorText: textOf(output) }];
}

/** The output of a tool: parsed, if its text is a JSON object or list; else the text; or the blocks, if there is more than one text. */
export function outputOf(blocks: readonly Block[]): unknown {
  const [first] = blocks;
  if (blocks.length !== 1 || first?.type !== "text") return blocks.length === 0 ? "" : blocks;
  if (!/^\s*[[{]/.test(first.text)) return first.text;
  try {
    return JSON.parse(first.text);
  } catch {
    return first.text;
  }
}
