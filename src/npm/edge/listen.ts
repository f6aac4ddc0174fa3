// The route that sends events of sessions as they happen.

import type { Agent, AgentEvent, SessionEvent } from "../types.js";
import { eventHeaders } from "../protocol/response.js";
import { cutOffError, pathFor } from "./calls.js";
import { Shared, frame } from "./held.js";
import type { Feed, FeedReader } from "./feed.js";
import { type Next, type ByteSource, outlet, ownBytes } from "./outlet.js";
import type { Asked } from "./routes.js";
import type { Noted } from "./turns.js";

/** Many proxies close a connection after about 30 s without data. */
const HEARTBEAT_MS = 15_000;

/** The events of one session, or of all sessions of the user. Calls that a restart cut off come first, with their end. */
export async function listen(agent: Agent, asked: Asked): Promise<Response> {
  const { slot, args, turns } = asked;
  const sessionId = slot.userId === null ? slot.sessionId : typeof args["sessionId"] === "string" ? args["sessionId"] : undefined;
  const cut = await turns.cutOff(sessionId);
  const ends = (await endsOf(agent, slot.userId, cut)).map((event) => new Shared(event.type, frame(event), "slot" in event ? event.slot.sessionId : undefined));
  const source = new Subscriber(turns.feed, turns.feed.listen(sessionId), pathFor(asked, sessionId === undefined ? "events" : `events?sessionId=${encodeURIComponent(sessionId)}`));
  try {
    // A comment is sent at once, so that the client knows that the subscription has started.
    const body = outlet(turns.held, source, { heartbeatMs: HEARTBEAT_MS, first: [ownBytes(": keep-alive\n\n"), ...ends] });
    return new Response(body, { headers: eventHeaders("lockgate") });
  } catch (error) {
    source.leave();
    throw error;
  }
}

/** A client that listens. */
class Subscriber implements ByteSource {
  readonly #feed: Feed;
  readonly #listener: FeedReader;
  readonly #read: string;
  #isOver = false;

  constructor(feed: Feed, listener: FeedReader, read: string) {
    this.#feed = feed;
    this.#listener = listener;
    this.#read = read;
  }

  next(): Next {
    const shared = this.#isOver ? undefined : this.#feed.take(this.#listener);
    if (shared !== undefined) return [shared];
    if (this.#isOver) return "end";
    if (!this.#listener.isBehind) return "later";
    this.#isOver = true;
    const at = new Date().toISOString();
    const message = "this reader was too slow, and events that it has not read were dropped";
    const hint = "subscribe again, and read the sessions and their history; a call that runs is followed with sessions/{id}/stream";
    return [new Shared("", frame({ type: "cut-off", code: "BUSY", message, hint, read: this.#read, at }))];
  }

  onWake(wake: () => void): void {
    this.#listener.wake = wake;
  }

  leave(): void {
    this.#feed.leave(this.#listener);
  }
}

/** The events that end calls which a restart cut off. The number of the last event is lost, so `seq` is 0. */
async function endsOf(agent: Agent, userId: string | null, cut: readonly Noted[]): Promise<readonly (AgentEvent | SessionEvent)[]> {
  const ends: (AgentEvent | SessionEvent)[] = [];
  for (const noted of cut) {
    const slot = { userId, sessionId: noted.sessionId };
    const info = await agent.session(slot);
    const { code, message, hint, retryable } = cutOffError(noted, slot);
    const at = new Date().toISOString();
    ends.push({ type: "error", error: { code, message, hint: hint ?? "", retryable }, slot, callId: noted.callId, seq: 0, at });
    if (info !== null) ends.push({ type: "session-changed", slot, info, at });
  }
  return ends;
}
