// The routes for `useChat` clients of the AI SDK.

import { readUiRequest, toUiMessages } from "../protocol/ai-sdk.js";
import type { UiMessage } from "../protocol/ai-sdk.js";
import type { Agent, Answer, Call, Msg } from "../types.js";
import { again } from "../protocol/ui-chunks.js";
import { eventsOf, missed } from "./calls.js";
import type { HeldCall } from "./replay.js";
import { heldBy } from "./rights.js";
import type { Asked } from "./routes.js";

/** Begins the call that a `useChat` client posts. */
export async function chat(agent: Agent, asked: Asked): Promise<Call> {
  const said = readUiRequest(asked.args);
  const { slot } = asked;
  const options = { attributes: asked.attributes };
  if (said.kind === "message") return agent.stream(said.input, { ...slot, ...options });
  if (said.kind === "answers") return agent.confirm(slot, await wanted(agent, asked, said.answers), options);
  const from = said.messageId === undefined ? {} : { from: await questionAt(agent, asked, said.messageId) };
  return agent.resend(slot, { ...options, ...heldBy(asked), ...from, ...(said.input === undefined ? {} : { input: said.input }) });
}

/** The answers to open asks. A client also sends the results of tools that ran here; they are left out. */
async function wanted(agent: Agent, { slot }: Asked, answers: readonly Answer[]): Promise<readonly Answer[]> {
  const asks = new Set((await agent.asks(slot)).map(({ toolCallId }) => toolCallId));
  const found = answers.filter(({ toolCallId }) => asks.has(toolCallId));
  // Without any match, all of them are passed on, so that the engine reports what is wrong.
  return found.length === 0 ? answers : found;
}

/** The id of the question that a message answers, or of the message itself if it is a question. The engine refuses an unknown id. */
async function questionAt(agent: Agent, { slot }: Asked, messageId: string): Promise<string> {
  let before: string | undefined;
  for (;;) {
    const page = await agent.history(slot, before === undefined ? {} : { before });
    const at = page.findIndex(({ id }) => id === messageId);
    if (at < 0 && page.length > 0) before = page[0]!.id;
    else return page.slice(0, at + 1).findLast(({ role, name }) => role === "user" && name !== "system")?.id ?? messageId;
  }
}

/** The messages with which a `useChat` client starts: the history, and the input of the running call. */
export async function chatMessages(agent: Agent, asked: Asked): Promise<Response> {
  return asked.answer(await messagesOf(agent, asked, asked.turns.find(asked.slot.sessionId)));
}

async function messagesOf(agent: Agent, { slot }: Asked, running: HeldCall | undefined): Promise<UiMessage[]> {
  const history = await agent.history(slot);
  const known = new Set(history.map(({ id }) => id));
  const { messages, answers } = toldTo(running);
  const all = toUiMessages([...history, ...messages.filter(({ id }) => !known.has(id))]);
  return all.map((message) => ({ ...message, parts: message.parts.map((part: ChatPart) => answered(part, answers)) }));
}

/** The input messages and the answers that a call has accepted so far, as far as these events are kept. */
function toldTo(call: HeldCall | undefined): { readonly messages: readonly Msg[]; readonly answers: readonly Answer[] } {
  const events = call?.eventsOf("accepted", "answered") ?? [];
  const messages = events.flatMap((event) => (event.type === "accepted" ? event.messages : []));
  const answers = events.flatMap((event) => (event.type === "answered" ? event.answers : []));
  return { messages, answers };
}

type ChatPart = { readonly toolCallId?: string; readonly state?: string };

/** A part whose approval was answered does not ask any more, even while the tool still runs. */
function answered(part: ChatPart, answers: readonly Answer[]): ChatPart {
  const answer = part.state === "approval-requested" && answers.find(({ toolCallId }) => toolCallId === part.toolCallId);
  return answer ? { ...part, state: "approval-responded", ...{ approval: { id: answer.toolCallId, approved: answer.approve === true } } } : part;
}

/** The stream that a `useChat` client reads after a reload: the whole message of the running call, from its beginning. */
export async function chatStream(agent: Agent, asked: Asked): Promise<Response> {
  const call = asked.turns.find(asked.slot.sessionId);
  if (call === undefined) return new Response(null, { status: 204 });
  if (call.start > 0) return missed(asked, call);
  // A call that answers approvals continues the message that asked for them.
  const last = toldTo(call).answers.length === 0 ? undefined : (await messagesOf(agent, asked, call)).at(-1);
  const first = last === undefined ? [] : again(last.id, last.parts);
  return eventsOf(call, asked, { protocol: "ai-sdk", first });
}
