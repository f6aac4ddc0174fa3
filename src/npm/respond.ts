// A call as an HTTP response: its events as server-sent events, ours or those of the AI SDK.

import { LockgateError } from "./errors.js";
import { type Frame, bodyOf } from "./sse.js";
import type { AgentEvent, Call } from "./types.js";
import { UiChunks } from "./ui-chunks.js";
import type { UiChunk } from "./ui-chunks.js";

export type Protocol = "lockgate" | "ai-sdk";

/** What `toResponse` takes besides the protocol. */
export type ResponseOptions = ResponseInit & { readonly onDisconnect?: "continue" | "stop" };

/** Proxies close connections on which nothing happens for half a minute or so. */
const HEARTBEAT_MS = 15_000;

/** That a client is gone is often seen only when something is written to it. */
const WATCH_MS = 2_000;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  // A proxy that collects a stream before it passes it on makes it useless.
  "x-accel-buffering": "no",
};

const AI_SDK_HEADERS = { "x-vercel-ai-ui-message-stream": "v1" };

/** The response for a call; a client that goes away stops it only if `onDisconnect` is "stop". */
export function respond(call: Call, protocol: Protocol = "lockgate", init: ResponseOptions = {}): Response {
  const { onDisconnect = "continue" } = init;
  if (onDisconnect !== "continue" && onDisconnect !== "stop") throw wrong("there is no such way to take a disconnect", "continue or stop");
  if (protocol !== "lockgate" && protocol !== "ai-sdk") throw wrong("there is no such protocol", "lockgate or ai-sdk");
  if (onDisconnect === "continue") call.detach();
  return streamed(call[Symbol.asyncIterator](), protocol, init);
}

/** The response for events that somebody reads; `first` are chunks of the AI SDK's that come before them. */
export function streamed(events: AsyncIterator<AgentEvent>, protocol: Protocol, given: ResponseOptions = {}, first: readonly UiChunk[] = []): Response {
  const { onDisconnect, ...init } = given;
  const headers = new Headers(init.headers);
  const own = protocol === "ai-sdk" ? { ...HEADERS, ...AI_SDK_HEADERS } : HEADERS;
  for (const [name, value] of Object.entries(own)) if (!headers.has(name)) headers.set(name, value);
  const frames = protocol === "ai-sdk" ? uiFrames(events, first) : ownFrames(events);
  return new Response(bodyOf(frames, onDisconnect === "stop" ? WATCH_MS : HEARTBEAT_MS), { ...init, headers });
}

/** Our own events; their `id` is their place, so a reader knows from where to go on. */
function ownFrames(events: AsyncIterator<AgentEvent>): AsyncIterator<readonly Frame[], undefined> {
  return framed(events, (event) => [{ id: event.seq, data: JSON.stringify(event) }], []);
}

function uiFrames(events: AsyncIterator<AgentEvent>, first: readonly UiChunk[]): AsyncIterator<readonly Frame[], undefined> {
  const chunks = new UiChunks();
  const before = [...first];
  const frames = (event: AgentEvent): Frame[] => [...before.splice(0), ...chunks.of(event)].map((chunk) => ({ id: event.seq, data: JSON.stringify(chunk) }));
  return framed(events, frames, [{ data: "[DONE]" }]);
}

/** Frames of events, and those that stand at the end. What a call fails with was shown as an event before. */
function framed(events: AsyncIterator<AgentEvent>, frames: (event: AgentEvent) => Frame[], end: readonly Frame[]): AsyncIterator<readonly Frame[], undefined> {
  let over = false;
  return {
    async next() {
      while (!over) {
        const next = await events.next().catch(() => ({ done: true, value: undefined }) as const);
        over = next.done === true;
        const found = next.done === true ? end : frames(next.value);
        if (found.length > 0) return { done: false, value: found };
      }
      return { done: true, value: undefined };
    },
    async return() {
      over = true;
      await events.return?.();
      return { done: true, value: undefined };
    },
  };
}

function wrong(message: string, names: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint: `use ${names}` });
}
