// The routes for `useChat` clients of the AI SDK.

import { readUiRequest, toUiMessages } from "../ai-sdk.js";
import type { UiMessage } from "../ai-sdk.js";
import type { CallHandle } from "../call.js";
import { LockgateError } from "../errors.js";
import { streamed } from "../respond.js";
import type { Agent, Answer, Call, Msg } from "../types.js";
import { again } from "../ui-chunks.js";
import { json, named } from "./reply.js";
import type { Asked } from "./routes.js";

/** What a `useChat` client posts. */
export async function chat(agent: Agent, asked: Asked): Promise<Call> {
  const said = readUiRequest(asked.args);
  const { slot } = asked;
  const options = { attributes: asked.attributes };
  if (said.kind === "message") return agent.stream(said.input, { ...slot, ...options });
  if (said.kind === "answers") return agent.confirm(slot, await wanted(agent, asked, said.answers), options);
  if (said.messageId !== undefined) await checkLast(agent, asked, said.messageId);
  return agent.resend(slot, { ...options, ...(said.input === undefined ? {} : { input: said.input }) });
}

/** A client sends all it knows of its last step, also the results that are from us. */
async function wanted(agent: Agent, { slot }: Asked, answers: readonly Answer[]): Promise<readonly Answer[]> {
  const asks = new Set((await agent.asks(slot)).map(({ toolCallId }) => toolCallId));
  const found = answers.filter(({ toolCallId }) => asks.has(toolCallId));
  // All of them, so that the engine says what is wrong with them.
  return found.length === 0 ? answers : found;
}

async function checkLast(agent: Agent, { slot }: Asked, messageId: string): Promise<void> {
  const last = (await agent.history(slot)).findLast(({ role, name }) => role === "user" && name === undefined);
  if (last?.id === messageId) return;
  throw new LockgateError("INPUT_INVALID", "only the last question can be changed", { hint: "to change an earlier one, fork the session before it" });
}

/** The messages that a `useChat` client begins with: what is stored, and what the call that runs was told. */
export async function chatMessages(agent: Agent, asked: Asked): Promise<Response> {
  return json(await messagesOf(agent, asked, asked.turns.find(asked.slot.sessionId)));
}

async function messagesOf(agent: Agent, { slot }: Asked, running: CallHandle | undefined): Promise<UiMessage[]> {
  const history = await agent.history(slot);
  const known = new Set(history.map(({ id }) => id));
  const { messages, answers } = toldTo(running);
  const all = toUiMessages([...history, ...messages.filter(({ id }) => !known.has(id))]);
  return all.map((message) => ({ ...message, parts: message.parts.map((part: Part) => answered(part, answers)) }));
}

/** What a call was told, as far as it has taken it. */
function toldTo(call: CallHandle | undefined): { readonly messages: readonly Msg[]; readonly answers: readonly Answer[] } {
  const events = call?.since(0) ?? [];
  const messages = events.flatMap((event) => (event.type === "accepted" ? event.messages : []));
  const answers = events.flatMap((event) => (event.type === "answered" ? event.answers : []));
  return { messages, answers };
}

type Part = { readonly toolCallId?: string; readonly state?: string };

/** A tool call that was answered does not ask any more, also while it runs. */
function answered(part: Part, answers: readonly Answer[]): Part {
  const answer = part.state === "approval-requested" && answers.find(({ toolCallId }) => toolCallId === part.toolCallId);
  return answer ? { ...part, state: "approval-responded", ...{ approval: { id: answer.toolCallId, approved: answer.approve === true } } } : part;
}

/** The answer that a `useChat` client goes on reading after a reload: all of its message, from the beginning. */
export async function chatStream(agent: Agent, asked: Asked): Promise<Response> {
  const call = asked.turns.find(asked.slot.sessionId);
  if (call === undefined) return new Response(null, { status: 204 });
  // A call that answers approvals goes on with the message that asked.
  const last = toldTo(call).answers.length === 0 ? undefined : (await messagesOf(agent, asked, call)).at(-1);
  const first = last === undefined ? [] : again(last.id, last.parts);
  return streamed(call.follow(0)[Symbol.asyncIterator](), "ai-sdk", { headers: named(call) }, first);
}
