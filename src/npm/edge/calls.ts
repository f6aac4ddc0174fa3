// The routes that answer with the events of a call.

import { LockgateError } from "../errors.js";
import { type Protocol, eventHeaders } from "../protocol/response.js";
import type { UiChunk } from "../protocol/ui-chunks.js";
import type { Agent, Answer, Call, CallOptions, Input } from "../types.js";
import { Shared, eventIn, frame } from "./held.js";
import { type Next, type ByteSource, outlet, ownBytes } from "./outlet.js";
import { type HeldCall, forgottenError } from "./replay.js";
import { named, refused } from "./reply.js";
import { heldBy } from "./rights.js";
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
    return agent.resend(asked.slot, { ...optionsOf(asked), ...heldBy(asked), ...(input === undefined ? {} : { input }), ...(from === undefined ? {} : { from }) });
  },
};

/** Many proxies close a connection after about 30 s without data. */
const HEARTBEAT_MS = 15_000;

/** A disconnect is often noticed only when data is written, so a call that should stop then gets a faster heartbeat. */
const WATCH_MS = 2_000;

/** The response for a call that just began: its events, or its reply if the client accepts only JSON. */
export async function show(call: HeldCall | undefined, refused: Promise<unknown>, asked: Asked, protocol: Protocol): Promise<Response> {
  // A call without an id was refused at once: its result rejects.
  if (call === undefined) return asked.answer(await refused);
  if (wantsReply(asked)) return asked.answer(await call.result());
  await call.begun();
  const { onDisconnect, slot, turns } = asked;
  // The call with a repeated callId is replaced by the first one when it has ended.
  return eventsOf(turns.find(slot.sessionId, call.id) ?? call, asked, { protocol, stops: onDisconnect === "stop" });
}

function wantsReply({ accept }: Asked): boolean {
  return accept.includes("application/json") && !accept.includes("text/event-stream");
}

/** How the events of a call are sent. */
interface Shown {
  readonly protocol: Protocol;
  /** The number of the first event. Default 0. */
  readonly from?: number;
  /** Whether the call stops when the client disconnects. Default false. */
  readonly stops?: boolean;
  /** Chunks of the AI SDK that come first. Default: none. */
  readonly first?: readonly UiChunk[];
}

/** The events of a call as a response. */
export async function eventsOf(call: HeldCall, asked: Asked, { protocol, from = 0, stops = false, first = [] }: Shown): Promise<Response> {
  const translate = protocol === "ai-sdk" ? await uiFrames(first) : ownFrames;
  const source = new Follower(call, { from, stops, translate, cutOff: cutOffOf(call, asked, protocol), end: protocol === "ai-sdk" ? [ownBytes("data: [DONE]\n\n")] : [] });
  try {
    const body = outlet(asked.turns.held, source, { heartbeatMs: stops ? WATCH_MS : HEARTBEAT_MS });
    return new Response(body, { headers: { ...eventHeaders(protocol), ...named(call) } });
  } catch (error) {
    source.leave(true);
    throw error;
  }
}

type Translate = (event: Shared, seq: number) => readonly Shared[];

/** Our own events. The `id` of a frame is the `seq` of its event, so that a client can continue after it. */
const ownFrames: Translate = (event, seq) => [ownBytes(`id: ${seq}\n`), event];

/** The chunks of the AI SDK. */
async function uiFrames(first: readonly UiChunk[]): Promise<Translate> {
  const { UiChunks } = await import("../protocol/ui-chunks.js");
  const chunks = new UiChunks();
  const before = [...first];
  return (event, seq) => [...before.splice(0), ...chunks.of(eventIn(event))].map((chunk) => ownBytes(`id: ${seq}\ndata: ${JSON.stringify(chunk)}\n\n`, event.sessionId));
}

/** How a client follows a call. */
interface Following {
  readonly from: number;
  readonly stops: boolean;
  readonly translate: Translate;
  readonly cutOff: (after: number) => Shared;
  /** What comes after the last event. */
  readonly end: readonly Shared[];
}

/** A client that follows a call. */
class Follower implements ByteSource {
  readonly #call: HeldCall;
  readonly #setup: Following;
  #next: number;
  #isOver = false;
  #leave = (): void => {};

  constructor(call: HeldCall, setup: Following) {
    this.#call = call;
    this.#setup = setup;
    this.#next = setup.from;
  }

  next(): Next {
    const call = this.#call;
    if (this.#isOver || call.isDeleted) return "end";
    const event = call.at(this.#next);
    if (event !== undefined) return this.#setup.translate(event, this.#next++);
    if (call.isRunning && this.#next >= call.length) return "later";
    this.#isOver = true;
    return this.#next < call.length ? [this.#setup.cutOff(this.#next - 1), ...this.#setup.end] : this.#setup.end;
  }

  onWake(wake: () => void): void {
    this.#leave = this.#call.onNews(wake);
  }

  leave(isRead: boolean): void {
    this.#leave();
    if (this.#setup.stops && !isRead) this.#call.stop();
  }
}

/** Makes the last frame for a reader that was too slow: it says where to go on. */
function cutOffOf(call: HeldCall, asked: Asked, protocol: Protocol): (after: number) => Shared {
  return (after) => {
    const { slot, id: callId, start } = call;
    const message = "this reader was too slow, and events that it has not read were dropped";
    const read = readOf(asked, call);
    if (protocol === "ai-sdk") return new Shared("", frame({ type: "error", errorText: `${message}: load the messages of the chat again` }));
    const hint = "read the stored turn in the history of the session; a call that runs is followed at `read`";
    return new Shared("", frame({ type: "cut-off", code: "BUSY", message, hint, slot, callId, after, ...(call.isRunning ? { next: start } : {}), read, at: new Date().toISOString() }));
  };
}

/** Where a client goes on that has missed events of a call: behind what is gone, or at the stored turn. */
function readOf(asked: Asked, call: HeldCall): string {
  const session = `sessions/${encodeURIComponent(call.slot.sessionId)}`;
  return pathFor(asked, call.isRunning ? `${session}/stream?callId=${encodeURIComponent(call.id)}&after=${call.start - 1}` : `${session}/history`);
}

/** The path of a route, as clients see it. */
export function pathFor({ basePath }: Asked, route: string): string {
  return `${basePath.replace(/\/+$/, "")}/${route}`;
}

/** The events of the running call, or of the call `callId` if that ended recently, after the event number `after`. */
export async function follow(asked: Asked): Promise<Response> {
  const { turns, slot, args } = asked;
  const callId = typeof args["callId"] === "string" ? args["callId"] : undefined;
  const from = placeOf(args["after"] ?? asked.lastEventId) + 1;
  const call = turns.find(slot.sessionId, callId);
  if (call !== undefined && wantsReply(asked)) return asked.answer(await call.result());
  if (call !== undefined && from >= call.start) return eventsOf(call, asked, { protocol: "lockgate", from });
  if (call !== undefined) return missed(asked, call);
  const read = pathFor(asked, `sessions/${encodeURIComponent(slot.sessionId)}/history`);
  if (callId !== undefined && turns.isForgotten(slot.sessionId, callId)) return refused(forgottenError(callId, slot), { read, ended: true });
  const cut = (await turns.cutOff(slot.sessionId)).filter((noted) => callId === undefined || noted.callId === callId);
  if (cut.length === 0) return new Response(null, { status: 204 });
  return refused(cutOffError(cut.at(-1)!, slot), { read });
}

/** The response to a client that wants events of a call which are not kept any more. */
export function missed(asked: Asked, call: HeldCall): Response {
  return refused(forgottenError(call.id, call.slot), { read: readOf(asked, call), ...(call.isRunning ? { next: call.start } : { ended: true }) });
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
