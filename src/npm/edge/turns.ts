// The calls of an object: running ones, recently ended ones, and those that a restart cut off.

import type { CallHandle } from "../call/call.js";
import type { AgentEvent, Call, SessionEvent } from "../types.js";
import { Feed } from "./feed.js";
import { HeldBytes, sharedEvent } from "./held.js";
import { HeldCall } from "./replay.js";

/** The part of a Durable Object's storage that is used besides the store. */
export interface ObjectStorage {
  /** The value under a key; undefined if there is none. */
  get(key: string): Promise<unknown>;
  /** Writes a value. */
  put(key: string, value: unknown): Promise<void>;
  /** Removes a key. */
  delete(key: string): Promise<unknown>;
  /** The values whose keys begin with a prefix. */
  list(options: { prefix: string }): Promise<Map<string, unknown>>;
  /** Sets the time of the next alarm, in ms since 1970. */
  setAlarm(at: number): Promise<void>;
  /** Removes the alarm. */
  deleteAlarm(): Promise<void>;
  /** Removes everything that is stored. */
  deleteAll(): Promise<void>;
}

/** The stored note about a call that began. It is deleted when the call ends. */
export interface Noted {
  /** The session of the call. */
  readonly sessionId: string;
  /** The id of the call. */
  readonly callId: string;
  /** When the call began, in ms. */
  readonly at: number;
  /** True if a restart cut the call off, and its turn is closed by now. */
  readonly interrupted?: boolean;
}

/** The number of ended calls that are remembered by their ids when their events are not kept any more. */
const MOST_FORGOTTEN = 256;

/** Keys of the store contain no colon, so these keys never collide with them. */
const NOTES = "lockgate:call/";

const keyOf = ({ sessionId, callId }: Pick<Noted, "sessionId" | "callId">): string => `${prefixOf(sessionId)}${encodeURIComponent(callId)}`;
const prefixOf = (sessionId: string): string => `${NOTES}${encodeURIComponent(sessionId)}/`;

/** The key of a call in memory. Ids contain no control characters. */
const nameOf = (sessionId: string, callId: string): string => `${sessionId}\n${callId}`;

/** The calls of one object. */
export class Turns {
  readonly held: HeldBytes;
  /** The events for clients that listen to sessions. */
  readonly feed: Feed;
  readonly #storage: ObjectStorage;
  readonly #running = new Map<string, HeldCall>();
  /** Ended calls whose events are kept, the one that ended first at the front. */
  readonly #over = new Map<string, HeldCall>();
  /** Ended calls whose events are not kept any more. */
  readonly #forgotten = new Set<string>();
  /** Calls that were found to be cut off, by session. */
  readonly #cut = new Map<string, readonly Noted[]>();

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
    this.feed = new Feed((shared) => this.held.release(shared));
    this.held = new HeldBytes({ finished: { shed: () => this.#shedFinished() }, waiting: this.feed, running: { shed: () => this.#shedRunning() } });
  }

  /** The number of running calls. */
  get running(): number {
    return this.#running.size;
  }

  /** Keeps a call for clients that reconnect, and stores a note that survives a restart. Undefined for a call that was refused at once: it has no id. */
  add(call: Call): HeldCall | undefined {
    const noted: Noted = { sessionId: call.slot.sessionId, callId: call.id, at: Date.now() };
    if (noted.callId === "") return undefined;
    const name = nameOf(noted.sessionId, noted.callId);
    const kept = new HeldCall(this.held, call as CallHandle);
    this.#running.set(name, kept);
    // A client that sends something has seen how the last turn ended.
    void this.forget(this.#cut.get(noted.sessionId) ?? []).catch(() => {});
    this.#cut.delete(noted.sessionId);
    // Writes are applied in order: the note is stored before the input is accepted.
    void this.#storage.put(keyOf(noted), noted).catch(() => {});
    const end = (): void => this.#end(name, keyOf(noted), kept);
    call.result.then(end, end);
    return kept;
  }

  #end(name: string, key: string, call: HeldCall): void {
    call.end();
    this.#running.delete(name);
    void this.#storage.delete(key).catch(() => {});
    if (call.isDeleted) return call.drop();
    this.#forgotten.delete(name);
    // A repeated callId ends at once with the stored outcome: the events of the first run are kept.
    const known = this.#over.get(name);
    const [kept, other] = known !== undefined && !call.isAccepted ? [known, call] : [call, known];
    this.#over.delete(name);
    this.#over.set(name, kept);
    other?.drop();
    this.held.fit();
  }

  /** Takes an event of the agent. */
  hear(event: AgentEvent | SessionEvent): void {
    if (event.type === "session-deleted") this.forgetSession(event.slot.sessionId);
    const call = "callId" in event ? this.#running.get(nameOf(event.slot.sessionId, event.callId)) : undefined;
    if (call === undefined && !this.feed.isRead) return;
    const shared = sharedEvent(event);
    if (call !== undefined) call.take(event as AgentEvent, shared);
    if (call?.isDeleted !== true && this.feed.add(event, shared)) this.held.hold(shared);
    this.feed.wake();
    this.held.fit();
  }

  #shedFinished(): boolean {
    const [oldest] = this.#over;
    if (oldest === undefined) return false;
    const [name, call] = oldest;
    this.#over.delete(name);
    call.drop();
    this.#forgotten.add(name);
    for (const first of this.#forgotten) if (this.#forgotten.size > MOST_FORGOTTEN) this.#forgotten.delete(first);
    return true;
  }

  #shedRunning(): boolean {
    let largest: HeldCall | undefined;
    for (const call of this.#running.values()) if (call.bytes > (largest?.bytes ?? 0)) largest = call;
    return largest?.shed() === true;
  }

  /** Whether the call with this id runs. */
  has(sessionId: string, callId: unknown): boolean {
    return typeof callId === "string" && this.#running.has(nameOf(sessionId, callId));
  }

  /** The running call of a session; or the call `callId`, which may have ended. */
  find(sessionId: string, callId?: string): HeldCall | undefined {
    if (callId !== undefined) {
      const name = nameOf(sessionId, callId);
      return this.#running.get(name) ?? this.#over.get(name);
    }
    return [...this.#running.values()].find(({ slot }) => slot.sessionId === sessionId);
  }

  /** Whether this call has ended, and its events were dropped to make room. */
  isForgotten(sessionId: string, callId: string): boolean {
    return this.#forgotten.has(nameOf(sessionId, callId));
  }

  /** Drops everything in memory about the ended calls of a deleted session, and ends what is being sent about it. */
  forgetSession(sessionId: string): void {
    this.#drop(sessionId);
    this.held.forget(sessionId);
  }

  /** Deletes a session by `work`, or everything without one. When this resolves, nothing of it is in memory. */
  async whileDeleting(sessionId: string | undefined, work: () => Promise<void>): Promise<void> {
    const ending = [...this.#running.values()].filter(({ slot }) => sessionId === undefined || slot.sessionId === sessionId);
    await work();
    for (const call of ending) call.delete();
    this.#drop(sessionId);
    this.held.forget(sessionId);
    const notes = (await this.cutOff(sessionId)).map(keyOf);
    for (const key of notes) await this.#storage.delete(key);
    if (sessionId === undefined) this.#cut.clear();
    else this.#cut.delete(sessionId);
  }

  #drop(sessionId: string | undefined): void {
    for (const [name, call] of this.#over) {
      if (sessionId !== undefined && call.slot.sessionId !== sessionId) continue;
      this.#over.delete(name);
      call.delete();
    }
    for (const name of this.#forgotten) if (sessionId === undefined || name.startsWith(nameOf(sessionId, ""))) this.#forgotten.delete(name);
    this.feed.forget(sessionId);
  }

  /** The calls that a restart cut off, in one session or in all. */
  async cutOff(sessionId?: string): Promise<readonly Noted[]> {
    const found = await this.#storage.list({ prefix: sessionId === undefined ? NOTES : prefixOf(sessionId) });
    const all = [...found.values()].map((noted) => noted as Noted).filter((noted) => !this.has(noted.sessionId, noted.callId));
    if (sessionId !== undefined && all.length > 0) this.#cut.set(sessionId, all);
    return all;
  }

  /** Notes that the turn of a cut-off call is closed. */
  async closed(noted: Noted): Promise<void> {
    await this.#storage.put(keyOf(noted), { ...noted, interrupted: true });
  }

  /** Deletes the notes of cut-off calls. */
  async forget(all: readonly Noted[]): Promise<void> {
    for (const noted of all) if (!this.has(noted.sessionId, noted.callId)) await this.#storage.delete(keyOf(noted));
  }
}
