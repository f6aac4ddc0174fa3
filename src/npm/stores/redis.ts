// `redisStore`: a store in Redis, through the user's client. One script per batch; the store never scans keys.
//
// Each user has two Redis keys: a hash of the records, and a sorted set of the record keys for lists. Both have the partition as
// hash tag, so a cluster keeps them on one node. A third Redis key lists the users of the whole store.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types/store.js";
import { byPartition, listAll, partitionOfBatch, partitionOfPrefix } from "./keys.js";
import type { ListedRecord, Page } from "./keys.js";
import { connectionOf } from "./redis/client.js";
import type { RedisClient, RedisConnection } from "./redis/client.js";
import { reportOf, settingsOf } from "./redis/durability.js";
import type { ServerSettings } from "./redis/durability.js";
import { lost, messageOf, text, withTypedErrors } from "./redis/errors.js";
import { ADD_USER, COMMIT, CONFIRM, GET, LIST, USERS } from "./redis/scripts.js";
import type { Script } from "./redis/scripts.js";

export type { RedisClient } from "./redis/client.js";

/** What `redisStore` may be given. */
export interface RedisStoreOptions {
  /** The beginning of every Redis key. Default: "lockgate:". */
  readonly prefix?: string;
  /**
   * The number of replicas that must have a commit before it counts as done (WAIT); with fewer, the commit fails as
   * STORE_UNAVAILABLE. Default: with a cluster or Sentinel all replicas that are connected to the master, otherwise 0.
   */
  readonly minReplicas?: number;
}

/** The number of records that one script lists. Longer lists take several scripts. */
const PAGE = 500;

/** Half of the limit of Redis: bytes that are not text are stored as Base64, which is a third longer. */
const MAX_VALUE_BYTES = 256 * 1024 * 1024;

/** How long one WAIT takes at most. Meanwhile other commands of the same connection wait too. */
const WAIT_MS = 50;

/** The number of times that a commit waits for replicas. */
const WAITS = 20;

/** A store in Redis. The server must not evict keys, and should keep an append-only file: see www/docs/stores.md. */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  const { prefix, minReplicas } = checked(options);
  const users = new RedisUsers(connectionOf(client), prefix, minReplicas);
  return {
    name: `Redis ${JSON.stringify(prefix)}`,
    get capabilities(): StoreCapabilities {
      return { atomic: true, compareAndSet: true, shared: "cluster", durability: users.durability, evictable: false, maxValueBytes: MAX_VALUE_BYTES };
    },
    async get(keys) {
      const found: (StoredRecord | null)[] = keys.map(() => null);
      for (const [partition, indexes] of byPartition(keys)) {
        const records = await users.get(partition, indexes.map((index) => keys[index]!));
        indexes.forEach((index, at) => (found[index] = records[at]!));
      }
      return found;
    },
    async list(within, page = {}) {
      const partition = partitionOfPrefix(within);
      if (partition !== undefined) return users.list(partition, within, page);
      return listAll(await users.withRecords(within, page), within, page, (each, rest) => users.list(each, within, rest));
    },
    async commit(batch) {
      const partition = partitionOfBatch(batch);
      return partition === undefined ? "ok" : users.commit(partition, batch);
    },
    report: () => users.report(),
  };
}

function checked(options: unknown): { readonly prefix: string; readonly minReplicas: number | undefined } {
  const wrong = (message: string): LockgateError => new LockgateError("OPTIONS", message, { hint: 'redisStore(client, { prefix: "my-app:" })' });
  if (typeof options !== "object" || options === null) throw wrong("the second argument of redisStore is not an object of options");
  const { prefix = "lockgate:", minReplicas, ...unknown } = options as Record<string, unknown>;
  if (Object.keys(unknown).length > 0) throw wrong(`redisStore has no option ${Object.keys(unknown).join(", ")}`);
  if (typeof prefix !== "string" || /[{}]/.test(prefix)) throw wrong("the prefix of redisStore must be text without braces");
  if (minReplicas !== undefined && !(Number.isInteger(minReplicas) && Number(minReplicas) >= 0)) throw wrong("minReplicas of redisStore must be a whole number from 0");
  return { prefix, minReplicas: minReplicas as number | undefined };
}

/** The records of each user, which a server keeps together, and the list of users. */
class RedisUsers {
  durability: "process" | "disk" = "process";
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  /** The replicas that must have a commit. Undefined: all that are connected. */
  readonly #minReplicas: number | undefined;
  readonly #known = new Set<string>();
  /** The Redis keys with a write of which it is not known that replicas have it, and the last such write. */
  readonly #unconfirmed = new Map<string, symbol>();
  #checked: Promise<unknown> | undefined;
  #cannotWait = false;

  constructor(connection: RedisConnection, prefix: string, minReplicas: number | undefined) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#minReplicas = minReplicas ?? (connection.kind === "server" ? 0 : undefined);
  }

  async get(partition: string, keys: readonly string[]): Promise<(StoredRecord | null)[]> {
    const [isThere, ...found] = (await this.#read(GET, partition, keys)) as unknown[];
    if (Number(isThere) === 0) await this.#checkAbsent(partition);
    return found.map((record) => (record === null ? null : decode(record)));
  }

  async list(partition: string, within: string, page: Page): Promise<ListedRecord[]> {
    const found: ListedRecord[] = [];
    let { after } = page;
    for (;;) {
      const limit = Math.min(PAGE, (page.limit ?? Infinity) - found.length);
      const [isThere, isMore, ...flat] = (await this.#read(LIST, partition, [within, after ?? "", limit, page.keysOnly ? 1 : 0])) as unknown[];
      if (Number(isThere) === 0) await this.#checkAbsent(partition);
      for (let at = 0; at < flat.length; at += 2) found.push({ key: text(flat[at])!, ...decode(flat[at + 1]) });
      if (Number(isMore) === 0 || found.length >= (page.limit ?? Infinity)) return found;
      after = found.at(-1)!.key;
    }
  }

  /** The users who may have records under this prefix. */
  async withRecords(within: string, page: Page): Promise<string[]> {
    // Partitions before the agent and user of the first possible key cannot have results.
    const from = (page.after !== undefined && page.after > within ? page.after : within).split("/").slice(0, 2).join("/");
    const [areThese, users] = (await this.#run(USERS, [this.#users], [`[${from}`, `(${within}\u{ff}`])) as [unknown, readonly unknown[]];
    const names = users.map((each) => text(each)!);
    return Number(areThese) === 1 ? names : names.filter((name) => name >= from && (name < within || name.startsWith(within))).sort();
  }

  async commit(partition: string, batch: Batch): Promise<"ok" | "conflict"> {
    // The user is listed with 0 before the first record, so that no list misses the user, and with 1 after it, so that a
    // loss of the records is noticed.
    const added = (score: 0 | 1): ScriptCall => ({ script: ADD_USER, keys: [this.#users], args: [partition, score] });
    const isKnown = this.#known.has(partition);
    if (!isKnown) await this.#write(added(0));
    const keys = this.#keysOf(partition);
    const [first] = batch.put;
    const proof = first === undefined ? [] : [first.key, batch.revision];
    const outcome = await this.#write({ script: COMMIT, keys, args: argumentsOf(batch) }, { script: CONFIRM, keys, args: proof });
    if (outcome === "lost") throw lost(partition);
    if (outcome !== "ok") return "conflict";
    if (!isKnown) {
      await this.#write(added(1));
      this.#known.add(partition);
    }
    return "ok";
  }

  /** Asks the servers what they would lose. */
  async report(): ReturnType<NonNullable<Store["report"]>> {
    try {
      const settings = await settingsOf(this.#connection);
      return reportOf(settings, { kind: this.#connection.kind, minReplicas: this.#minReplicas, canWait: !this.#cannotWait });
    } catch (error) {
      return { durability: "unknown", warnings: [`Redis cannot be asked how durable it is: ${messageOf(error)}`] };
    }
  }

  get #users(): string {
    return `${this.#prefix}users`;
  }

  #keysOf(partition: string): readonly [string, string] {
    return [`${this.#prefix}{${partition}}records`, `${this.#prefix}{${partition}}names`];
  }

  /** Runs a script that reads records of a user. What it finds is on the replicas too that a commit waits for. */
  async #read(script: Script, partition: string, args: readonly (string | number)[]): Promise<unknown> {
    const keys = this.#keysOf(partition);
    // The outcome of a commit may be unknown. If it is found here, it must not be lost with this server.
    if (this.#unconfirmed.has(keys[0])) await this.#write({ script: CONFIRM, keys, args: [] });
    const answer = await this.#run(script, keys, args);
    if (answer === "lost") throw lost(partition);
    return answer;
  }

  /** Runs a script that reads. */
  async #run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    await this.#check();
    const [answer] = await evaluate(this.#connection, { script, keys, args });
    return answer;
  }

  /** Runs a script that writes, and waits until the replicas have what it wrote. Returns what became of it. `confirm` writes nothing new, and fails if what was written is gone. */
  async #write(asked: ScriptCall, confirm = asked): Promise<string> {
    await this.#check();
    const key = asked.keys[0]!;
    const mark = Symbol(key);
    if (this.#minReplicas !== 0) this.#unconfirmed.set(key, mark);
    try {
      const [outcome, nConnected] = outcomeOf((await evaluate(this.#connection, asked))[0]);
      if (outcome === "ok" && this.#minReplicas !== 0) await this.#replicate(confirm, nConnected);
      if (this.#unconfirmed.get(key) === mark) this.#unconfirmed.delete(key);
      return outcome;
    } catch (error) {
      if (this.#minReplicas !== 0) this.#unconfirmed.set(key, mark);
      throw error;
    }
  }

  /**
   * Waits until the replicas have what was written. WAIT waits for the writes of its own connection, and the write may have been sent
   * over another one. So a confirming write goes before it, which also shows that the server still has the first one: another
   * server may have become the master.
   */
  async #replicate(confirm: ScriptCall, nConnected: number): Promise<void> {
    for (let nth = 1, nKnown = nConnected; ; nth++) {
      // If the server may not be asked how many replicas it has, there must be one.
      const nNeeded = this.#minReplicas ?? Math.abs(nKnown);
      if (nNeeded === 0 || this.#cannotWait) return;
      if (nKnown >= 0 && nKnown < nNeeded) throw behind(nKnown, nNeeded);
      const [answer, nReached] = await evaluate(this.#connection, confirm, ["WAIT", String(nNeeded), String(WAIT_MS)]).catch((error: unknown) => this.#withoutWait(error));
      if (nReached === undefined) return;
      const [outcome, nNow] = outcomeOf(answer);
      // The engine finds out by reading whether another commit has followed, or the write is gone.
      if (outcome !== "ok") throw unknown();
      if (Number(nReached) >= nNeeded) return;
      if (nth === WAITS) throw behind(Number(nReached), nNeeded);
      nKnown = nNow;
    }
  }

  /** Some services have no WAIT. Without `minReplicas` the store works there too; `storage()` says what it means. */
  #withoutWait(error: unknown): readonly unknown[] {
    if (this.#minReplicas !== undefined || !/unknown command|NOPERM/i.test(messageOf((error as LockgateError).cause))) throw error;
    this.#cannotWait = true;
    return [];
  }

  /** Called when a user has no records: throws if the user had records before, because then the server has evicted them. */
  async #checkAbsent(partition: string): Promise<void> {
    const made = text(await withTypedErrors(() => this.#connection.send(this.#users, ["ZSCORE", this.#users, partition])));
    if (Number(made) !== 1) return;
    // Another client may have written the user's first records between the two commands. Then the user is there now.
    const [isThere] = (await this.#read(GET, partition, [])) as unknown[];
    if (Number(isThere) === 0) throw lost(partition);
  }

  /** Checks the settings of the servers before the first script. Throws if one evicts records. */
  async #check(): Promise<void> {
    this.#checked ??= settingsOf(this.#connection).then(
      (settings) => this.#accept(settings),
      (error: unknown) => {
        this.#checked = undefined;
        throw error;
      },
    );
    await this.#checked;
  }

  #accept(settings: readonly ServerSettings[]): void {
    const policy = settings.find(({ evicts }) => evicts !== undefined)?.evicts;
    if (policy !== undefined) {
      this.#checked = undefined;
      throw new LockgateError("OPTIONS", `this Redis evicts keys (maxmemory-policy ${policy}), and sessions would be lost`, {
        hint: "set maxmemory-policy to noeviction, or use another Redis",
      });
    }
    this.durability = settings.every(({ isDurable }) => isDurable === true) ? "disk" : "process";
  }
}

/** A script with its keys and arguments. */
interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** Runs a script by its hash, and sends the source only if the server does not know the hash. Returns its answer, and that of the command that follows it on the same connection. */
async function evaluate(connection: RedisConnection, { script, keys, args }: ScriptCall, next?: readonly string[]): Promise<readonly unknown[]> {
  const [first = ""] = keys;
  const rest = [keys.length, ...keys, ...args].map(String);
  const run = async (...command: readonly string[]): Promise<readonly unknown[]> =>
    next === undefined ? [await connection.send(first, command)] : connection.pipeline(first, [command, next]);
  return withTypedErrors(async () => {
    try {
      return await run("EVALSHA", script.sha, ...rest);
    } catch (error) {
      if (!messageOf(error).startsWith("NOSCRIPT")) throw error;
      return run("EVAL", script.source, ...rest);
    }
  });
}

/** What became of a write, and the number of connected replicas; -1 if it is not known. */
function outcomeOf(answer: unknown): readonly [string, number] {
  const [outcome, nConnected] = Array.isArray(answer) ? (answer as readonly unknown[]) : [answer, 0];
  return [text(outcome) ?? "", Number(nConnected)];
}

function argumentsOf(batch: Batch): (string | number)[] {
  const { expect, revision, put, remove, removePrefix = [] } = batch;
  if (/\n/.test(revision)) throw new LockgateError("INPUT_INVALID", "a revision has a line break", { hint: "revisions are one line" });
  const expected = expect === undefined ? ["", "any"] : [expect.key, expect.revision === null ? "absent" : `is\n${expect.revision}`];
  const records = put.flatMap(({ key, value }) => [key, encode(revision, value)]);
  return [...expected, `is\n${revision}`, removePrefix.length, remove.length, put.length, ...removePrefix, ...remove, ...records];
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** A record as text, which every client transfers unchanged: `u` and the text, or `b` and Base64 if the bytes are not text. */
function encode(revision: string, value: Uint8Array): string {
  try {
    return `${revision}\nu${strict.decode(value)}`;
  } catch {
    return `${revision}\nb${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}`;
  }
}

function decode(record: unknown): StoredRecord {
  const whole = text(record) ?? "";
  const end = whole.indexOf("\n");
  const rest = whole.slice(end + 2);
  const kind = whole[end + 1];
  if (end < 0 || (kind !== "u" && kind !== "b")) {
    throw new LockgateError("STORE_CORRUPT", "a record in Redis was not written by this store", { hint: "use a prefix that nothing else uses" });
  }
  return { revision: whole.slice(0, end), value: kind === "u" ? encoder.encode(rest) : new Uint8Array(Buffer.from(rest, "base64")) };
}

function behind(nReached: number, nNeeded: number): LockgateError {
  return new LockgateError("STORE_UNAVAILABLE", `Redis has applied a commit, but ${nReached} of ${nNeeded} replicas have it`, {
    hint: "start the missing replicas and try again, or set minReplicas of redisStore",
  });
}

function unknown(): LockgateError {
  return new LockgateError("STORE_UNAVAILABLE", "it is not known whether Redis has a commit", { hint: "try again" });
}
