// A call as an HTTP response: its events as server-sent events, in our format or in that of the AI SDK.

import { LockgateError } from "../errors.js";
import { type Frame, bodyOf } from "./sse.js";
import type { AgentEvent, Call } from "../types.js";
import type { UiChunks } from "./ui-chunks.js";

/** The format of the events: our own, or the UI message stream v1 of the AI SDK. */
export type Protocol = "lockgate" | "ai-sdk";

/** The options of `toResponse`. */
export type ResponseOptions = ResponseInit & { readonly onDisconnect?: "continue" | "stop" };

/** Many proxies close a connection after about 30 s without data. */
const HEARTBEAT_MS = 15_000;

/** A disconnect is often noticed only when data is written, so a call that should stop then gets a faster heartbeat. */
const WATCH_MS = 2_000;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  // Tells proxies not to buffer the stream.
  "x-accel-buffering": "no",
};

const AI_SDK_HEADERS = { "x-vercel-ai-ui-message-stream": "v1" };

/** The headers of a stream of events. */
export function eventHeaders(protocol: Protocol): Record<string, string> {
  return protocol === "ai-sdk" ? { ...HEADERS, ...AI_SDK_HEADERS } : HEADERS;
}

/** The response for a call. A disconnect stops the call only if `onDisconnect` is "stop". */
export function respond(call: Call, protocol: Protocol = "lockgate", init: ResponseOptions = {}): Response {
  const { onDisconnect = "continue" } = init;
  if (onDisconnect !== "continue" && onDisconnect !== "stop") throw wrong("there is no such onDisconnect", "continue or stop");
  if (protocol !== "lockgate" && protocol !== "ai-sdk") throw wrong("there is no such protocol", "lockgate or ai-sdk");
  if (onDisconnect === "continue") call.detach();
  return streamed(call[Symbol.asyncIterator](), protocol, init);
}

/** The response for these events. */
function streamed(events: AsyncIterator<AgentEvent>, protocol: Protocol, given: ResponseOptions): Response {
  const { onDisconnect, ...init } = given;
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(eventHeaders(protocol))) if (!headers.has(name)) headers.set(name, value);
  const frames = protocol === "ai-sdk" ? uiFrames(events) : ownFrames(events);
  return new Response(bodyOf(frames, onDisconnect === "stop" ? WATCH_MS : HEARTBEAT_MS), { ...init, headers });
}

/** Our own events. The `id` of a frame is the `seq` of its event, so that a client can continue after it. */
function ownFrames(events: AsyncIterator<AgentEvent>): AsyncIterator<readonly Frame[], undefined> {
  return framed(events, (event) => [{ id: event.seq, data: JSON.stringify(event) }], []);
}

function uiFrames(events: AsyncIterator<AgentEvent>): AsyncIterator<readonly Frame[], undefined> {
  let chunks: UiChunks | undefined;
  const frames = async (event: AgentEvent): Promise<Frame[]> => {
    // Pages seldom need this format, so the code for it is not loaded at the start.
    chunks ??= new (await import("./ui-chunks.js")).UiChunks();
    return chunks.of(event).map((chunk) => ({ id: event.seq, data: JSON.stringify(chunk) }));
  };
  return framed(events, frames, [{ data: "[DONE]" }]);
}

/** The frames of the events, then `end`. The stream of a failed call ends like any other: its `error` event was sent before. */
function framed(events: AsyncIterator<AgentEvent>, frames: (event: AgentEvent) => Frame[] | Promise<Frame[]>, end: readonly Frame[]): AsyncIterator<readonly Frame[], undefined> {
  let over = false;
  return {
    async next() {
      while (!over) {
        const next = await events.next().catch(() => ({ done: true, value: undefined }) as const);
        over = next.done === true;
        const made = next.done === true ? end : frames(next.value);
        const found = made instanceof Promise ? await made : made;
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
