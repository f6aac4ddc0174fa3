// lockgate/ai-sdk: reads the requests of a `useChat` client, and turns our messages into messages for `useChat`.

import { LockgateError } from "../errors.js";
import type { Answer, InputBlock, InputMsg } from "../types.js";

export { toUiMessages } from "./ui-messages.js";
export type { UiMessage } from "./ui-messages.js";

/**
 * The request of the client. "answers" has every answer of the last step: pass to `confirm` only the answers to open `asks`.
 * "regenerate" answers a question again: the question `messageId` or the one that the message `messageId` answers, otherwise the last one. An `input`
 * replaces the question.
 */
export type UiRequest = {
  /** The id of the chat, which is the id of the session. */
  readonly sessionId: string;
} & (
  /** A new message. */
  | { readonly kind: "message"; readonly input: InputMsg }
  /** Answers to asks. */
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  /** A question is to be answered again. */
  | { readonly kind: "regenerate"; readonly input?: InputMsg; readonly messageId?: string }
);

interface UiPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

interface UiInput {
  readonly id?: unknown;
  readonly role: string;
  readonly parts: readonly UiPart[];
  readonly metadata?: unknown;
}

/** Reads the body that the transport of the AI SDK posts. Throws INPUT_INVALID. Only the last message is read: the session has the history. */
export function readUiRequest(body: unknown): UiRequest {
  if (!isObject(body)) throw bad("the body is not an object", "post what DefaultChatTransport posts");
  const { id: sessionId, trigger, messageId } = body;
  if (typeof sessionId !== "string" || sessionId === "") throw bad("the chat has no id", "useChat({ id })");
  if (trigger === "regenerate-message") return { sessionId, kind: "regenerate", ...(typeof messageId === "string" ? { messageId: askedIn(body) ?? messageId } : {}) };
  const last = lastOf(body);
  if (last.role === "assistant") return { sessionId, kind: "answers", answers: answersOf(last) };
  if (last.role !== "user") throw bad(`the last message has the role ${last.role}`, "the last message must be from the user");
  const input = inputOf(last);
  if (typeof messageId !== "string") return { sessionId, kind: "message", input };
  const { id: _, ...edited } = input;
  return { sessionId, kind: "regenerate", input: edited, messageId };
}

/** The id of the question that the client has sent last. The session may not know the id of the client's answer. */
function askedIn({ messages, message }: { readonly messages?: unknown; readonly message?: unknown }): string | undefined {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : message;
  return isObject(last) && last["role"] === "user" && typeof last["id"] === "string" ? last["id"] : undefined;
}

function lastOf(body: { readonly messages?: unknown; readonly message?: unknown }): UiInput {
  const last: unknown = Array.isArray(body.messages) ? body.messages.at(-1) : body.message;
  if (!isObject(last) || typeof last["role"] !== "string" || !Array.isArray(last["parts"])) {
    throw bad("there is no message", "send messages: [{ role, parts }], or message: { role, parts }");
  }
  const parts = last["parts"] as unknown[];
  if (!parts.every((part) => isObject(part) && typeof part["type"] === "string")) throw bad("a part has no type", 'parts: [{ type: "text", text }]');
  return last as unknown as UiInput;
}

function inputOf({ id, parts, metadata }: UiInput): InputMsg {
  const content = parts.map(blockOf).filter((block) => block !== undefined);
  if (content.length === 0) throw bad("the message is empty", "say something: text, or a file");
  return { role: "user", content, ...(typeof id === "string" && id !== "" ? { id } : {}), ...(isObject(metadata) ? { metadata } : {}) };
}

/** A part as a block. Parts that concern only the client are left out. */
function blockOf(part: UiPart): InputBlock | undefined {
  if (part.type === "text" && typeof part["text"] === "string") return { type: "text", text: part["text"] };
  if (part.type !== "file") return undefined;
  const { url, mediaType = "application/octet-stream", filename } = part;
  if (typeof url !== "string" || typeof mediaType !== "string") throw bad("a file part has no url", '{ type: "file", url, mediaType }');
  const data = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s.exec(url);
  const source = data === null ? ({ type: "url", url, mediaType } as const) : ({ type: "base64", mediaType: data[1] || mediaType, data: data[2]! } as const);
  const kind = mediaType.split("/", 1)[0]!;
  const type = kind === "image" || kind === "audio" || kind === "video" ? kind : "file";
  return { type, source, ...(typeof filename === "string" ? { name: filename } : {}) };
}

/** The answers of the client to tool calls of its last step. */
function answersOf({ parts }: UiInput): Answer[] {
  const from = parts.findLastIndex(({ type }) => type === "step-start") + 1;
  const answers = parts.slice(from).flatMap((part) => answerOf(part));
  if (answers.length > 0) return answers;
  throw bad("the last message is from the assistant and has no answers", "send a message, or answer an approval");
}

function answerOf(part: UiPart): Answer[] {
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
