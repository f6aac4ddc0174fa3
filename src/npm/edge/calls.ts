// The routes that answer with the events of a call.

import { LockgateError } from "../errors.js";
import { type Protocol, streamed } from "../protocol/response.js";
import type { Agent, AgentEvent, Answer, Call, CallOptions, Input } from "../types.js";
import { json, named, refused } from "./reply.js";
import type { Asked } from "./routes.js";
import type { Noted } from "./turns.js";

const NAMES = ["callId", "overlap", "outputSchema"] as const;

/** `extra` is not taken from clients: it could change what the owner of the key pays for. */
const GENERATE = ["temperature", "topP", "maxTokens", "toolChoice", "reasoningEffort"] as const;

/** The options that a client may set for its call. */
export function optionsOf({ args, attributes }: Asked): CallOptions {
  const generate = args["generate"];
  return {
    ...picked(args, NAMES),
    ...(typeof generate === "object" && generate !== null ? { generate: picked(generate as Record<string, unknown>, GENERATE) } : {}),
    attributes,
  } as CallOptions;
}

function picked(from: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

/** Begins the call of a route. */
export const begin = {
  stream: (agent: Agent, asked: Asked): Call => agent.stream(asked.args["input"] as Input, { ...asked.slot, ...optionsOf(asked) }),
  confirm: (agent: Agent, asked: Asked): Call => agent.confirm(asked.slot, asked.args["answers"] as Answer[], optionsOf(asked)),
  resume: (agent: Agent, asked: Asked): Call => agent.resume(asked.slot, optionsOf(asked)),
  resend: (agent: Agent, asked: Asked): Call => {
    const { input, from } = asked.args as { readonly input?: Input; readonly from?: string };
    return agent.resend(asked.slot, { ...optionsOf(asked), ...(input === undefined ? {} : { input }), ...(from === undefined ? {} : { from }) });
  },
};

/** The response for a call that just began: its events, or its reply if the client accepts only JSON. */
export async function show(call: Call, asked: Asked, protocol: Protocol): Promise<Response> {
  const headers = named(call);
  const { onDisconnect } = asked;
  if (wantsReply(asked)) return json(await call.result);
  if (onDisconnect !== "stop") call.detach();
  const events = call[Symbol.asyncIterator]();
  const first = await untilBegun(events);
  return streamed(before(first, events), protocol, { headers, onDisconnect: onDisconnect === "stop" ? "stop" : "continue" });
}

function wantsReply({ accept }: Asked): boolean {
  return accept.includes("application/json") && !accept.includes("text/event-stream");
}

/** Reads the first events of a call, until the call is accepted or fails, so that a refused call is answered with an error and not with a stream. */
async function untilBegun(events: AsyncIterator<AgentEvent>): Promise<AgentEvent[]> {
  const seen: AgentEvent[] = [];
  for (;;) {
    const next = await events.next();
    if (next.done === true) return seen;
    seen.push(next.value);
    // After an `error` event the iterator throws the error.
    if (next.value.type !== "call-start" && next.value.type !== "error") return seen;
  }
}

function before(first: AgentEvent[], rest: AsyncIterator<AgentEvent>): AsyncIterator<AgentEvent> {
  return {
    next: async () => {
      const event = first.shift();
      return event === undefined ? rest.next() : { done: false, value: event };
    },
    return: async () => (await rest.return?.()) ?? { done: true, value: undefined },
  };
}

/** The events of the running call, or of the call `callId` if that ended recently, after the event number `after`. */
export async function follow(asked: Asked): Promise<Response> {
  const { turns, slot, args, basePath } = asked;
  const callId = typeof args["callId"] === "string" ? args["callId"] : undefined;
  const after = placeOf(args["after"] ?? asked.lastEventId);
  const call = turns.find(slot.sessionId, callId);
  if (call !== undefined && wantsReply(asked)) return json(await call.result);
  if (call !== undefined) return streamed(call.follow(after + 1)[Symbol.asyncIterator](), "lockgate", { headers: named(call) });
  const cut = (await turns.cutOff(slot.sessionId)).filter((noted) => callId === undefined || noted.callId === callId);
  if (cut.length === 0) return new Response(null, { status: 204 });
  const read = `${basePath.replace(/\/+$/, "")}/sessions/${encodeURIComponent(slot.sessionId)}/history`;
  return refused(cutOffError(cut.at(-1)!, slot), { read });
}

/** The error for a call that a restart cut off. */
export function cutOffError({ callId }: Noted, slot: Asked["slot"]): LockgateError {
  const hint = "the turn is stored as interrupted: fetch the history of the session, or continue the turn with resume";
  return new LockgateError("SUPERSEDED", "the turn was interrupted: its Durable Object was restarted", { hint, callId, slot });
}

function placeOf(after: unknown): number {
  if (after === undefined || after === null || after === "") return -1;
  const place = Number(after);
  if (Number.isInteger(place) && place >= -1) return place;
  throw new LockgateError("INPUT_INVALID", "after is not the number of an event", { hint: "give the seq of the last event you have" });
}
