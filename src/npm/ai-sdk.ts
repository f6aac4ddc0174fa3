// lockgate/ai-sdk: what a `useChat` client sends, and a session's messages as it shows them.

import { LockgateError } from "./errors.js";
import type { Answer, InputBlock, InputMsg } from "./types.js";

export { toUiMessages } from "./ui-messages.js";
export type { UiMessage } from "./ui-messages.js";

/**
 * What the client wants. "answers" are those of the last step: hand those to `confirm` that `asks` names.
 * "regenerate" answers the last question again, or `input` in the place of the message `messageId`.
 */
export type UiRequest = { readonly sessionId: string } & (
  | { readonly kind: "message"; readonly input: InputMsg }
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  | { readonly kind: "regenerate"; readonly input?: InputMsg; readonly messageId?: string }
);

interface Part {
  readonly type: string;
  readonly [member: string]: unknown;
}

interface Sent {
  readonly id?: unknown;
  readonly role: string;
  readonly parts: readonly Part[];
  readonly metadata?: unknown;
}

/** Reads the body that the AI SDK's transport posts, or INPUT_INVALID. Only its last message counts: the history is the session's own. */
export function readUiRequest(body: unknown): UiRequest {
  if (!isObject(body)) throw bad("the body is not an object", "post what DefaultChatTransport posts");
  const { id: sessionId, trigger, messageId } = body;
  if (typeof sessionId !== "string" || sessionId === "") throw bad("the chat has no id", "useChat({ id })");
  if (trigger === "regenerate-message") return { sessionId, kind: "regenerate" };
  const last = lastOf(body);
  if (last.role === "assistant") return { sessionId, kind: "answers", answers: answersOf(last) };
  if (last.role !== "user") throw bad(`the last message is of the ${last.role}`, "the last message is what the user says");
  const input = inputOf(last);
  if (typeof messageId !== "string") return { sessionId, kind: "message", input };
  const { id: _, ...edited } = input;
  return { sessionId, kind: "regenerate", input: edited, messageId };
}

function lastOf(body: { readonly messages?: unknown; readonly message?: unknown }): Sent {
  const last: unknown = Array.isArray(body.messages) ? body.messages.at(-1) : body.message;
  if (!isObject(last) || typeof last["role"] !== "string" || !Array.isArray(last["parts"])) {
    throw bad("there is no message", "send messages: [{ role, parts }], or message: { role, parts }");
  }
  const parts = last["parts"] as unknown[];
  if (!parts.every((part) => isObject(part) && typeof part["type"] === "string")) throw bad("a part has no type", 'parts: [{ type: "text", text }]');
  return last as unknown as Sent;
}

function inputOf({ id, parts, metadata }: Sent): InputMsg {
  const content = parts.map(blockOf).filter((block) => block !== undefined);
  if (content.length === 0) throw bad("the message is empty", "say something: text, or a file");
  return { role: "user", content, ...(typeof id === "string" && id !== "" ? { id } : {}), ...(isObject(metadata) ? { metadata } : {}) };
}

/** A part as a block; what is only for the client is left out. */
function blockOf(part: Part): InputBlock | undefined {
  if (part.type === "text" && typeof part["text"] === "string") return { type: "text", text: part["text"] };
  if (part.type !== "file") return undefined;
  const { url, mediaType = "application/octet-stream", filename } = part;
  if (typeof url !== "string" || typeof mediaType !== "string") throw bad("a file has no address", '{ type: "file", url, mediaType }');
  const data = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s.exec(url);
  const source = data === null ? ({ type: "url", url, mediaType } as const) : ({ type: "base64", mediaType: data[1] || mediaType, data: data[2]! } as const);
  const kind = mediaType.split("/", 1)[0]!;
  const type = kind === "image" || kind === "audio" || kind === "video" ? kind : "file";
  return { type, source, ...(typeof filename === "string" ? { name: filename } : {}) };
}

/** What the client says about tool calls of its last step. */
function answersOf({ parts }: Sent): Answer[] {
  const from = parts.findLastIndex(({ type }) => type === "step-start") + 1;
  const answers = parts.slice(from).flatMap((part) => answerOf(part));
  if (answers.length > 0) return answers;
  throw bad("the last message is an answer of ours, and answers nothing", "send a message, or answer an approval");
}

function answerOf(part: Part): Answer[] {
  const { type, state, toolCallId, approval, output, errorText } = part;
  if ((!type.startsWith("tool-") && type !== "dynamic-tool") || typeof toolCallId !== "string") return [];
  if (state === "output-available" && part["preliminary"] !== true) return [{ toolCallId, output }];
  if (state === "output-error") return [{ toolCallId, output: errorText, failed: true }];
  if (state !== "approval-responded" || !isObject(approval)) return [];
  const reason = typeof approval["reason"] === "string" ? { reason: approval["reason"] } : {};
  return [approval["approved"] === true ? { toolCallId, approve: true, ...reason } : { toolCallId, approve: false, ...reason }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bad(message: string, hint: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint });
}
