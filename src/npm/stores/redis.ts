// Redis, through a client that the user made: one script a batch, and never a search over keys.
//
// Each user has two keys with the partition as hash tag, so that both are on one node of a cluster: a hash of the
// records, and a sorted set of their names for lists. A third key, of the whole store, knows the users.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../store-types.js";
import { byPartition, listAll, partitionOfBatch, partitionOfPrefix } from "./keys.js";
import type { Listed, Page } from "./keys.js";
import { COMMIT, GET, LIST } from "./redis-scripts.js";
import type { Script } from "./redis-scripts.js";

/** A client of `redis` (node-redis) or of `ioredis`, connected by whoever made it. */
export type RedisClient =
  | { sendCommand(args: string[]): Promise<unknown> }
  | { call(command: string, ...args: (string | number)[]): Promise<unknown> };

/** At most so many records are listed by one script; a longer list takes several. */
const PAGE = 500;

/** Half of what Redis takes: bytes that are no text take a third more room. */
const MAX_VALUE_BYTES = 256 * 1024 * 1024;

/** A store in Redis. The server must not evict, and should keep an append-only file: see the README. */
export function redisStore(client: RedisClient, options: { readonly prefix?: string } = {}): Store {
  const send = senderOf(client);
  const prefix = options.prefix ?? "lockgate:";
  if (typeof prefix !== "string" || /[{}]/.test(prefix)) {
    throw new LockgateError("OPTIONS", "the prefix of a Redis store is text without braces", { hint: 'redisStore(client, { prefix: "my-app:" })' });
  }
  const users = `${prefix}users`;
  const keysOf = (partition: string): [string, string] => [`${prefix}{${partition}}records`, `${prefix}{${partition}}names`];
  const known = new Set<string>();
  let checked: Promise<"process" | "disk"> | undefined;
  let durability: "process" | "disk" = "process";

  /** Runs a script on a user's keys; the first time ever the server is looked at. */
  const run = async (script: Script, partition: string, args: readonly (string | number)[]): Promise<unknown> => {
    checked ??= inspect(send);
    durability = await checked.catch((error: unknown) => {
      checked = undefined;
      throw error;
    });
    const keys = keysOf(partition);
    const answer = await evaluate(send, script, [...keys, ...args].map(String), keys.length);
    if (answer === "lost") throw lost(partition);
    return answer;
  };

  /** A user whose records were there once and are gone has been evicted: that is no fresh user. */
  const absentUser = async (partition: string): Promise<void> => {
    const made = text(await attempt(() => send("ZSCORE", users, partition)));
    if (Number(made) === 1) throw lost(partition);
  };

  const get = async (partition: string, keys: readonly string[]): Promise<(StoredRecord | null)[]> => {
    const [isThere, ...found] = (await run(GET, partition, keys)) as unknown[];
    if (Number(isThere) === 0) await absentUser(partition);
    return found.map((record) => (record === null ? null : decode(record)));
  };

  const list = async (partition: string, within: string, page: Page): Promise<Listed[]> => {
    const found: Listed[] = [];
    let { after } = page;
    for (;;) {
      const limit = Math.min(PAGE, (page.limit ?? Infinity) - found.length);
      const [isThere, isMore, ...flat] = (await run(LIST, partition, [within, after ?? "", limit, page.keysOnly ? 1 : 0])) as unknown[];
      if (Number(isThere) === 0) await absentUser(partition);
      for (let at = 0; at < flat.length; at += 2) found.push({ key: text(flat[at])!, ...decode(flat[at + 1]) });
      if (Number(isMore) === 0 || found.length >= (page.limit ?? Infinity)) return found;
      after = found.at(-1)!.key;
    }
  };

  return {
    name: `Redis ${JSON.stringify(prefix)}`,
    get capabilities(): StoreCapabilities {
      return { atomic: true, compareAndSet: true, shared: "cluster", durability, evictable: false, maxValueBytes: MAX_VALUE_BYTES };
    },
    async get(keys) {
      const found: (StoredRecord | null)[] = keys.map(() => null);
      for (const [partition, places] of byPartition(keys)) {
        const records = await get(partition, places.map((place) => keys[place]!));
        places.forEach((place, at) => (found[place] = records[at]!));
      }
      return found;
    },
    async list(within, page = {}) {
      const partition = partitionOfPrefix(within);
      if (partition !== undefined) return list(partition, within, page);
      // A partition is at most its agent and user before the key that the list begins with.
      const from = (page.after !== undefined && page.after > within ? page.after : within).split("/").slice(0, 2).join("/");
      const all = (await attempt(() => send("ZRANGEBYLEX", users, `[${from}`, `(${within}\u{ff}`))) as unknown[];
      return listAll(all.map((each) => text(each)!), within, page, (each, rest) => list(each, within, rest));
    },
    async commit(batch) {
      const partition = partitionOfBatch(batch);
      if (partition === undefined) return "ok";
      // Known before there is anything, so that no list misses a user; `1` when there is, so that a loss is noticed.
      if (!known.has(partition)) await attempt(() => send("ZADD", users, "NX", "0", partition));
      const answer = text(await run(COMMIT, partition, argumentsOf(batch)));
      if (answer === "ok" && !known.has(partition)) {
        await attempt(() => send("ZADD", users, "1", partition));
        known.add(partition);
      }
      return answer === "ok" ? "ok" : "conflict";
    },
  };
}

type Send = (command: string, ...args: string[]) => Promise<unknown>;

/** Both kinds of client as one. A client of ioredis has a `sendCommand` too, of another kind. */
function senderOf(client: RedisClient): Send {
  if (typeof client === "object" && client !== null) {
    if ("call" in client && typeof client.call === "function") return (command, ...args) => client.call(command, ...args);
    if ("sendCommand" in client && typeof client.sendCommand === "function") return (command, ...args) => client.sendCommand([command, ...args]);
  }
  throw new LockgateError("OPTIONS", "that is no Redis client", { hint: "redisStore(client) takes a client of redis or ioredis" });
}

/** Runs a script by its hash, and sends it only where it is not known. */
async function evaluate(send: Send, script: Script, args: readonly string[], nKeys: number): Promise<unknown> {
  return attempt(async () => {
    try {
      return await send("EVALSHA", script.sha, String(nKeys), ...args);
    } catch (error) {
      if (!messageOf(error).startsWith("NOSCRIPT")) throw error;
      return send("EVAL", script.source, String(nKeys), ...args);
    }
  });
}

/** Refuses a server that throws records away by itself, and finds out whether it keeps a file of every write. */
async function inspect(send: Send): Promise<"process" | "disk"> {
  const info = await attempt(() => send("INFO", "memory")).then(text, ignoreRefusal);
  const policy = /maxmemory_policy:(\S+)/.exec(info ?? "")?.[1] ?? "noeviction";
  const isLimited = Number(/(?:^|\n)maxmemory:(\d+)/.exec(info ?? "")?.[1] ?? 0) > 0;
  if (isLimited && policy.startsWith("allkeys")) {
    throw new LockgateError("OPTIONS", `this Redis evicts whatever it likes (maxmemory-policy ${policy})`, {
      hint: "set maxmemory-policy to noeviction, or use another Redis: sessions are no cache",
    });
  }
  const append = settings(await attempt(() => send("CONFIG", "GET", "append*")).catch(ignoreRefusal));
  return append.get("appendonly") === "yes" && append.get("appendfsync") === "always" ? "disk" : "process";
}

/** What the server answers about its settings: pairs, or in the newer protocol a map. */
function settings(answer: unknown): ReadonlyMap<string | null, string | null> {
  const flat = Array.isArray(answer) ? answer : answer instanceof Map ? [...answer].flat() : Object.entries(answer ?? {}).flat();
  const pairs = new Map<string | null, string | null>();
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.set(text(flat[at]), text(flat[at + 1]));
  return pairs;
}

/** Who may not ask the server about itself may still use it. */
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

/** A record as text, which every client carries unharmed: `u` and text, or `b` and Base64 where the bytes are no text. */
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
    throw new LockgateError("STORE_CORRUPT", "a record in Redis was not written by this store", { hint: "give the store a prefix of its own" });
  }
  return { revision: whole.slice(0, end), value: kind === "u" ? encoder.encode(rest) : new Uint8Array(Buffer.from(rest, "base64")) };
}

/** An answer as text: clients may be set to answer with bytes. */
function text(answer: unknown): string | null {
  if (answer === null || answer === undefined) return null;
  return answer instanceof Uint8Array ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(answer) : String(answer);
}

/** What the client throws, as an error of ours. */
async function attempt<T>(work: () => Promise<T>): Promise<T> {
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
  if (/WRONGTYPE/.test(message)) return failed("STORE_CORRUPT", "somebody else uses these keys: give the store a prefix of its own");
  if (/proto-max-bulk-len|invalid bulk length/.test(message)) return failed("STATE_TOO_LARGE", "raise the server's proto-max-bulk-len");
  if (/timed? ?out|ETIMEDOUT/i.test(message)) return failed("STORE_TIMEOUT", "see whether the server is overloaded");
  return failed("STORE_UNAVAILABLE", "see whether the server runs, takes writes, and can be reached");
}

const messageOf = (error: unknown): string => (error instanceof Error ? `${(error as NodeJS.ErrnoException).code ?? ""} ${error.message}`.trim() : String(error));

function lost(partition: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `Redis has lost records of ${partition}`, {
    hint: "restore them from a backup; never let the server evict: set maxmemory-policy to noeviction",
  });
}
