// The calls of an object: running ones, recently ended ones, and those that a restart cut off.

import type { CallHandle } from "../call/call.js";
import type { Call } from "../types.js";

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

/** The number of ended calls that are kept for clients that reconnect late. */
const KEPT = 64;

/** Keys of the store contain no colon, so these keys never collide with them. */
const NOTES = "lockgate:call/";

const keyOf = ({ sessionId, callId }: Pick<Noted, "sessionId" | "callId">): string => `${prefixOf(sessionId)}${encodeURIComponent(callId)}`;
const prefixOf = (sessionId: string): string => `${NOTES}${encodeURIComponent(sessionId)}/`;

/** The calls of one object. */
export class Turns {
  readonly #storage: ObjectStorage;
  readonly #running = new Map<string, CallHandle>();
  readonly #over = new Map<string, CallHandle>();
  /** Calls that were found to be cut off, by session. */
  readonly #cut = new Map<string, readonly Noted[]>();

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  /** The number of running calls. */
  get running(): number {
    return this.#running.size;
  }

  /** Keeps a call for clients that reconnect, and stores a note that survives a restart. */
  add(call: Call): void {
    const noted: Noted = { sessionId: call.slot.sessionId, callId: call.id, at: Date.now() };
    // A call that was refused at once has no id, and needs no note.
    if (noted.callId === "") return;
    const key = keyOf(noted);
    this.#running.set(key, call as CallHandle);
    // A client that sends something has seen how the last turn ended.
    void this.forget(this.#cut.get(noted.sessionId) ?? []).catch(() => {});
    this.#cut.delete(noted.sessionId);
    // Writes are applied in order: the note is stored before the input is accepted.
    void this.#storage.put(key, noted).catch(() => {});
    const end = (): void => this.#end(key, call as CallHandle);
    call.result.then(end, end);
  }

  #end(key: string, call: CallHandle): void {
    this.#running.delete(key);
    // A repeated callId ends at once and has fewer events than the first run: the longer one is kept.
    const known = this.#over.get(key);
    this.#over.delete(key);
    this.#over.set(key, known !== undefined && known.length > call.length ? known : call);
    for (const old of this.#over.keys()) if (this.#over.size > KEPT) this.#over.delete(old);
    void this.#storage.delete(key).catch(() => {});
  }

  /** Whether the call with this id runs. */
  has(sessionId: string, callId: unknown): boolean {
    return typeof callId === "string" && this.#running.has(keyOf({ sessionId, callId }));
  }

  /** The running call of a session; or the call `callId`, which may have ended. */
  find(sessionId: string, callId?: string): CallHandle | undefined {
    if (callId !== undefined) {
      const key = keyOf({ sessionId, callId });
      return this.#running.get(key) ?? this.#over.get(key);
    }
    return [...this.#running].find(([key]) => key.startsWith(prefixOf(sessionId)))?.[1];
  }

  /** The calls that a restart cut off, in one session or in all. */
  async cutOff(sessionId?: string): Promise<readonly Noted[]> {
    const found = await this.#storage.list({ prefix: sessionId === undefined ? NOTES : prefixOf(sessionId) });
    const all = [...found].filter(([key]) => !this.#running.has(key)).map(([, noted]) => noted as Noted);
    if (sessionId !== undefined) this.#cut.set(sessionId, all);
    return all;
  }

  /** Notes that the turn of a cut-off call is closed. */
  async closed(noted: Noted): Promise<void> {
    await this.#storage.put(keyOf(noted), { ...noted, interrupted: true });
  }

  /** Deletes the notes of cut-off calls. */
  async forget(all: readonly Noted[]): Promise<void> {
    for (const noted of all) if (!this.#running.has(keyOf(noted))) await this.#storage.delete(keyOf(noted));
  }
}
