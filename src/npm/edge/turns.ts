// The calls of an object: those that run, those that are just over, and those that a restart has cut off.

import type { CallHandle } from "../call.js";
import type { Call } from "../types.js";

/** What of a Durable Object's storage is used besides the store. */
export interface ObjectStorage {
  get(key: string): Promise<unknown>;
  put(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<unknown>;
  list(options: { prefix: string }): Promise<Map<string, unknown>>;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
  deleteAll(): Promise<void>;
}

/** A call that was begun, as it is noted until it is over. */
export interface Noted {
  readonly sessionId: string;
  readonly callId: string;
  /** When it was begun. */
  readonly at: number;
  /** It was still under way when the object was restarted, and is closed by now. */
  readonly interrupted?: boolean;
}

/** Calls that are over stay within reach for readers that come back late. */
const KEPT = 64;

/** No key of the store has a colon, so these never meet its records. */
const NOTES = "lockgate:call/";

const keyOf = ({ sessionId, callId }: Pick<Noted, "sessionId" | "callId">): string => `${prefixOf(sessionId)}${encodeURIComponent(callId)}`;
const prefixOf = (sessionId: string): string => `${NOTES}${encodeURIComponent(sessionId)}/`;

export class Turns {
  readonly #storage: ObjectStorage;
  readonly #running = new Map<string, CallHandle>();
  readonly #over = new Map<string, CallHandle>();
  /** Those that were found cut off, by session. */
  readonly #cut = new Map<string, readonly Noted[]>();

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Keeps a call within reach, and a note of it for whoever comes after a restart. */
  add(call: Call): void {
    const noted: Noted = { sessionId: call.slot.sessionId, callId: call.id, at: Date.now() };
    // One that was refused at once has no id, and leaves nothing.
    if (noted.callId === "") return;
    const key = keyOf(noted);
    this.#running.set(key, call as CallHandle);
    // Whoever says something in a session has seen how the last turn ended.
    void this.forget(this.#cut.get(noted.sessionId) ?? []).catch(() => {});
    this.#cut.delete(noted.sessionId);
    // Writes are kept in order: it is there before the input is accepted.
    void this.#storage.put(key, noted).catch(() => {});
    const end = (): void => this.#end(key, call as CallHandle);
    call.result.then(end, end);
  }

  #end(key: string, call: CallHandle): void {
    this.#running.delete(key);
    // One that was made before ends at once, and shows less than it did the first time.
    const known = this.#over.get(key);
    this.#over.delete(key);
    this.#over.set(key, known !== undefined && known.length > call.length ? known : call);
    for (const old of this.#over.keys()) if (this.#over.size > KEPT) this.#over.delete(old);
    void this.#storage.delete(key).catch(() => {});
  }

  /** Whether that very call runs. */
  has(sessionId: string, callId: unknown): boolean {
    return typeof callId === "string" && this.#running.has(keyOf({ sessionId, callId }));
  }

  /** The call that runs in a session; or a certain one, which may be over. */
  find(sessionId: string, callId?: string): CallHandle | undefined {
    if (callId !== undefined) {
      const key = keyOf({ sessionId, callId });
      return this.#running.get(key) ?? this.#over.get(key);
    }
    return [...this.#running].find(([key]) => key.startsWith(prefixOf(sessionId)))?.[1];
  }

  /** The calls that a restart has cut off, of one session or of all. */
  async cutOff(sessionId?: string): Promise<readonly Noted[]> {
    const found = await this.#storage.list({ prefix: sessionId === undefined ? NOTES : prefixOf(sessionId) });
    const all = [...found].filter(([key]) => !this.#running.has(key)).map(([, noted]) => noted as Noted);
    if (sessionId !== undefined) this.#cut.set(sessionId, all);
    return all;
  }

  /** Notes that a call which was cut off is closed. */
  async closed(noted: Noted): Promise<void> {
    await this.#storage.put(keyOf(noted), { ...noted, interrupted: true });
  }

  /** Forgets calls that were cut off. */
  async forget(all: readonly Noted[]): Promise<void> {
    for (const noted of all) if (!this.#running.has(keyOf(noted))) await this.#storage.delete(keyOf(noted));
  }
}
