// `redisStore`: a store in Redis, through the user's client. One script per batch; the store never scans keys.
//
// Each user has two Redis keys: a hash of the records, and a sorted set of the record keys for lists. Both have the partition as
// hash tag, so a cluster keeps them on one node. A third Redis key lists the users of the whole store.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types/store.js";
import { byPartition, listAll, partitionOfBatch, partitionOfPrefix } from "./keys.js";
import type { ListedRecord, Page } from "./keys.js";
import { COMMIT, GET, LIST } from "./redis-scripts.js";
import type { Script } from "./redis-scripts.js";

/** A connected client of `redis` (node-redis) or `ioredis`. */
export type RedisClient =
  /** `redis` (node-redis). */
  | { sendCommand(args: string[]): Promise<unknown> }
  /** `ioredis`. */
  | { call(command: string, ...args: (string | number)[]): Promise<unknown> };

/** The number of records that one script lists. Longer lists take several scripts. */
const PAGE = 500;

/** Half of the limit of Redis: bytes that are not text are stored as Base64, which is a third longer. */
const MAX_VALUE_BYTES = 256 * 1024 * 1024;

/** A store in Redis. The server must not evict keys, and should keep an append-only file: see www/docs/stores.md. */
export function redisStore(client: RedisClient, options: { readonly prefix?: string } = {}): Store {
  const prefix = options.prefix ?? "lockgate:";
  if (typeof prefix !== "string" || /[{}]/.test(prefix)) {
    throw new LockgateError("OPTIONS", "the prefix of redisStore must be text without braces", { hint: 'redisStore(client, { prefix: "my-app:" })' });
  }
  const users = new RedisUsers(senderOf(client), prefix);
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
  };
}

/** The records of each user, which a server keeps together, and the list of users. */
class RedisUsers {
  durability: "process" | "disk" = "process";
  readonly #send: SendCommand;
  readonly #prefix: string;
  readonly #known = new Set<string>();
  #checked: Promise<"process" | "disk"> | undefined;

  constructor(send: SendCommand, prefix: string) {
    this.#send = send;
    this.#prefix = prefix;
  }

  async get(partition: string, keys: readonly string[]): Promise<(StoredRecord | null)[]> {
    const [isThere, ...found] = (await this.#run(GET, partition, keys)) as unknown[];
    if (Number(isThere) === 0) await this.#checkAbsent(partition);
    return found.map((record) => (record === null ? null : decode(record)));
  }

  async list(partition: string, within: string, page: Page): Promise<ListedRecord[]> {
    const found: ListedRecord[] = [];
    let { after } = page;
    for (;;) {
      const limit = Math.min(PAGE, (page.limit ?? Infinity) - found.length);
      const [isThere, isMore, ...flat] = (await this.#run(LIST, partition, [within, after ?? "", limit, page.keysOnly ? 1 : 0])) as unknown[];
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
    const all = (await withTypedErrors(() => this.#send("ZRANGEBYLEX", this.#users, `[${from}`, `(${within}\u{ff}`))) as unknown[];
    return all.map((each) => text(each)!);
  }

  async commit(partition: string, batch: Batch): Promise<"ok" | "conflict"> {
    // The user is listed with 0 before the first record, so that no list misses the user, and with 1 after it, so that a
    // loss of the records is noticed.
    if (!this.#known.has(partition)) await withTypedErrors(() => this.#send("ZADD", this.#users, "NX", "0", partition));
    const answer = text(await this.#run(COMMIT, partition, argumentsOf(batch)));
    if (answer !== "ok") return "conflict";
    if (!this.#known.has(partition)) {
      await withTypedErrors(() => this.#send("ZADD", this.#users, "1", partition));
      this.#known.add(partition);
    }
    return "ok";
  }

  get #users(): string {
    return `${this.#prefix}users`;
  }

  /** Runs a script on the keys of a user. Before the first script the server's settings are checked. */
  async #run(script: Script, partition: string, args: readonly (string | number)[]): Promise<unknown> {
    this.#checked ??= inspect(this.#send);
    this.durability = await this.#checked.catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    const keys = [`${this.#prefix}{${partition}}records`, `${this.#prefix}{${partition}}names`];
    const answer = await evaluate(this.#send, script, [...keys, ...args].map(String), keys.length);
    if (answer === "lost") throw lost(partition);
    return answer;
  }

  /** Called when a user has no records: throws if the user had records before, because then the server has evicted them. */
  async #checkAbsent(partition: string): Promise<void> {
    const made = text(await withTypedErrors(() => this.#send("ZSCORE", this.#users, partition)));
    if (Number(made) !== 1) return;
    // Another client may have written the user's first records between the two commands. Then the user is there now.
    const [isThere] = (await this.#run(GET, partition, [])) as unknown[];
    if (Number(isThere) === 0) throw lost(partition);
  }
}

type SendCommand = (command: string, ...args: string[]) => Promise<unknown>;

/** One way to send commands with either client. A client of ioredis has a `sendCommand` too, with other arguments. */
function senderOf(client: RedisClient): SendCommand {
  if (typeof client === "object" && client !== null) {
    if ("call" in client && typeof client.call === "function") return (command, ...args) => client.call(command, ...args);
    if ("sendCommand" in client && typeof client.sendCommand === "function") return (command, ...args) => client.sendCommand([command, ...args]);
  }
  throw new LockgateError("OPTIONS", "redisStore needs a Redis client", { hint: "pass a client of the package redis or ioredis" });
}

/** Runs a script by its hash, and sends the source only if the server does not know the hash. */
async function evaluate(send: SendCommand, script: Script, args: readonly string[], nKeys: number): Promise<unknown> {
  return withTypedErrors(async () => {
    try {
      return await send("EVALSHA", script.sha, String(nKeys), ...args);
    } catch (error) {
      if (!messageOf(error).startsWith("NOSCRIPT")) throw error;
      return send("EVAL", script.source, String(nKeys), ...args);
    }
  });
}

/** Throws if the server evicts records. Returns "disk" if the server writes each change to its append-only file. */
async function inspect(send: SendCommand): Promise<"process" | "disk"> {
  const info = await withTypedErrors(() => send("INFO", "memory")).then(text, ignoreRefusal);
  const policy = /maxmemory_policy:(\S+)/.exec(info ?? "")?.[1] ?? "noeviction";
  const isLimited = Number(/(?:^|\n)maxmemory:(\d+)/.exec(info ?? "")?.[1] ?? 0) > 0;
  if (isLimited && policy.startsWith("allkeys")) {
    throw new LockgateError("OPTIONS", `this Redis evicts keys (maxmemory-policy ${policy}), and sessions would be lost`, {
      hint: "set maxmemory-policy to noeviction, or use another Redis",
    });
  }
  const append = settings(await withTypedErrors(() => send("CONFIG", "GET", "append*")).catch(ignoreRefusal));
  return append.get("appendonly") === "yes" && append.get("appendfsync") === "always" ? "disk" : "process";
}

/** The answer of CONFIG GET as a map. Servers answer with pairs, or with a map in the newer protocol. */
function settings(answer: unknown): ReadonlyMap<string | null, string | null> {
  const flat = Array.isArray(answer) ? answer : answer instanceof Map ? [...answer].flat() : Object.entries(answer ?? {}).flat();
  const pairs = new Map<string | null, string | null>();
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.set(text(flat[at]), text(flat[at + 1]));
  return pairs;
}

/** Some servers do not allow clients to read settings. The store works there too. */
function ignoreRefusal(error: unknown): null {
  if (/NOPERM|unknown command|not allowed/i.test(messageOf((error as LockgateError).cause))) return null;
  throw error;
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

/** An answer as text. Clients may be configured to return bytes. */
function text(answer: unknown): string | null {
  if (answer === null || answer === undefined) return null;
  return answer instanceof Uint8Array ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(answer) : String(answer);
}

/** Runs `work`, with errors of the client turned into LockgateErrors. */
async function withTypedErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw LockgateError.isInstance(error) ? error : fromRedis(error);
  }
}

function fromRedis(error: unknown): LockgateError {
  const message = messageOf(error);
  const failed = (code: ConstructorParameters<typeof LockgateError>[0], hint: string): LockgateError =>
    new LockgateError(code, `Redis failed: ${message}`, { hint, cause: error });
  if (/\bOOM\b/.test(message)) return failed("STORE_QUOTA", "the server's maxmemory is used up: raise it");
  if (/WRONGTYPE/.test(message)) return failed("STORE_CORRUPT", "another program uses these keys: use a prefix that nothing else uses");
  if (/proto-max-bulk-len|invalid bulk length/.test(message)) return failed("STATE_TOO_LARGE", "raise the server's proto-max-bulk-len");
  if (/timed? ?out|ETIMEDOUT/i.test(message)) return failed("STORE_TIMEOUT", "check whether the server is overloaded");
  return failed("STORE_UNAVAILABLE", "check whether the server runs, accepts writes and can be reached");
}

const messageOf = (error: unknown): string => (error instanceof Error ? `${(error as NodeJS.ErrnoException).code ?? ""} ${error.message}`.trim() : String(error));

function lost(partition: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `Redis has lost records of ${partition}`, {
    hint: "restore them from a backup, and set maxmemory-policy to noeviction so that the server evicts nothing",
  });
}
