// One way to send commands with every client of Redis that the store accepts: node-redis and ioredis, to one server, a cluster or a
// group watched by Sentinel.

import { LockgateError } from "../../errors.js";

/** A client of `redis` (node-redis: `createClient`, `createClientPool`, `createCluster`, `createSentinel`) or of `ioredis` (`Redis`, also with Sentinel, and `Cluster`). */
export type RedisClient =
  /** node-redis: `createClient` and `createClientPool`. */
  | { sendCommand(args: string[]): Promise<unknown> }
  /** node-redis: `createCluster`. */
  | { sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown> }
  /** node-redis: `createSentinel`. */
  | { sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown> }
  /** ioredis: `Redis` and `Cluster`. */
  | { call(command: string, ...args: (string | number)[]): Promise<unknown> };

type Command = readonly string[];

/** Sends a command. */
export type Send = (command: Command) => Promise<unknown>;

/** What the client is connected to. */
export interface RedisConnection {
  /** If a master of a cluster or of a Sentinel group fails, a replica takes its place. */
  readonly kind: "server" | "sentinel" | "cluster";
  /** Sends a command to the master that has this key. */
  send(key: string, command: Command): Promise<unknown>;
  /**
   * Sends commands over one connection to the master that has this key: none of them is sent over another connection if this one
   * is lost. Rejects with the first error. An answer is undefined if the command was not sent.
   */
  pipeline(key: string, commands: readonly Command[]): Promise<readonly unknown[]>;
  /** Each master. */
  masters(): Promise<readonly Send[]>;
}

/** Finds out what client this is. Throws OPTIONS if it is none. Reads are never marked as such, so no client sends them to a replica. */
export function connectionOf(client: unknown): RedisConnection {
  const given = (typeof client === "object" && client !== null ? client : {}) as ClientMembers;
  if (typeof given.then === "function") throw wrong("redisStore was given a promise", "wait for it: redisStore(await createClient({ … }).connect())");
  if (given.isPipeline === true || typeof given.execAsPipeline === "function") throw wrong("redisStore was given a pipeline or transaction", HINT);
  if (typeof given.call === "function") return ofIoredis(given as Ioredis);
  if (typeof given.sendCommand !== "function") throw wrong("redisStore needs a Redis client", HINT);
  switch (shapeOf(given as NodeRedis)) {
    case "server":
      return ofServer(given as NodeRedis);
    case "sentinel":
      return ofSentinel(given as NodeRedis);
    case "cluster":
      return ofCluster(given as NodeRedis);
  }
}

const HINT = "pass a client of the package redis (createClient, createCluster, createSentinel) or ioredis (Redis, Cluster)";

/** The members that tell the clients apart, and those that are used besides `sendCommand` and `call`. */
interface ClientMembers {
  readonly then?: unknown;
  readonly isPipeline?: unknown;
  readonly execAsPipeline?: unknown;
  readonly call?: unknown;
  readonly sendCommand?: unknown;
}

interface NodeRedis {
  sendCommand(...args: readonly unknown[]): Promise<unknown>;
  multi?(routing?: string): NodeRedisMulti;
  readonly getMasterNode?: unknown;
  readonly release?: unknown;
  readonly masters?: readonly object[];
  nodeClient?(node: object): Promise<NodeRedis>;
}

interface NodeRedisMulti {
  addCommand(...args: readonly unknown[]): NodeRedisMulti;
  execAsPipeline(): Promise<readonly unknown[]>;
}

interface Ioredis {
  call(command: string, ...args: readonly string[]): Promise<unknown>;
  pipeline?(commands: readonly Command[]): { exec(): Promise<readonly (readonly [Error | null, unknown])[] | null> };
  nodes?(role: "master"): readonly Ioredis[];
  readonly isCluster?: boolean;
  readonly options?: { readonly sentinels?: unknown; readonly role?: unknown };
}

/**
 * The three clients of node-redis have a `sendCommand` with other arguments each. An object that only passes commands on has none of
 * their other members: then the number of arguments tells.
 */
function shapeOf(client: NodeRedis): RedisConnection["kind"] {
  if (typeof client.nodeClient === "function" && Array.isArray(client.masters)) return "cluster";
  if (typeof client.getMasterNode === "function" || typeof client.release === "function") return "sentinel";
  if (typeof client.multi === "function") return "server";
  const count = client.sendCommand.length;
  return count >= 3 ? "cluster" : count === 2 ? "sentinel" : "server";
}

function ofServer(client: NodeRedis): RedisConnection {
  const send: Send = (command) => client.sendCommand(command);
  return {
    kind: "server",
    send: (_, command) => send(command),
    pipeline: (_, commands) =>
      client.multi === undefined ? atOnce(send, commands) : commands.reduce((multi, command) => multi.addCommand(command), client.multi()).execAsPipeline(),
    masters: async () => [send],
  };
}

function ofSentinel(client: NodeRedis): RedisConnection {
  const send: Send = (command) => client.sendCommand(false, command);
  return {
    kind: "sentinel",
    send: (_, command) => send(command),
    pipeline: (_, commands) =>
      client.multi === undefined ? atOnce(send, commands) : commands.reduce((multi, command) => multi.addCommand(false, command), client.multi()).execAsPipeline(),
    masters: async () => [send],
  };
}

function ofCluster(client: NodeRedis): RedisConnection {
  const sendTo = (key: string | undefined, command: Command): Promise<unknown> => client.sendCommand(key, false, command);
  const watched = watching((key) => (client.masters ?? [1]).map(() => sendTo(undefined, ["EXISTS", key])));
  const send = (key: string, command: Command): Promise<unknown> => watched(key, () => sendTo(key, command));
  const once = (key: string, commands: readonly Command[]): Promise<readonly unknown[]> => {
    if (client.multi === undefined) return atOnce((command) => sendTo(key, command), commands);
    return commands.reduce((multi, command) => multi.addCommand(key, false, command), client.multi(key)).execAsPipeline();
  };
  return {
    kind: "cluster",
    send,
    pipeline: (key, commands) => watched(key, () => redirected(once, send, key, commands)),
    masters: async () => {
      const { masters, nodeClient } = client;
      if (masters === undefined || nodeClient === undefined) return [(command) => sendTo(undefined, command)];
      return masters.map((node): Send => async (command) => (await client.nodeClient!(node)).sendCommand(command));
    },
  };
}

function ofIoredis(client: Ioredis): RedisConnection {
  const { isCluster, options } = client;
  const isSentinel = isCluster !== true && Array.isArray(options?.sentinels);
  if (isSentinel && options?.role === "slave") throw wrong("this client of ioredis is connected to a replica, which cannot be written to", 'leave out role, or set role: "master"');
  const sendWith = (using: Ioredis, [name = "", ...args]: Command): Promise<unknown> => using.call(name.toLowerCase(), ...args);
  const send = (_: string, command: Command): Promise<unknown> => sendWith(client, command);
  const once = async (_: string, commands: readonly Command[]): Promise<readonly unknown[]> => {
    if (client.pipeline === undefined) return atOnce((command) => sendWith(client, command), commands);
    const answers = await client.pipeline(commands.map(([name = "", ...args]) => ["call", name.toLowerCase(), ...args])).exec();
    return (answers ?? []).map(([error, answer]) => {
      if (error !== null) throw error;
      return answer;
    });
  };
  const all: Send = (command) => sendWith(client, command);
  return {
    kind: isCluster === true ? "cluster" : isSentinel ? "sentinel" : "server",
    send,
    pipeline: isCluster === true ? (key, commands) => redirected(once, send, key, commands) : once,
    masters: async () => {
      if (isCluster !== true || client.nodes === undefined) return [all];
      // Before the first answer the client does not know which nodes are masters.
      await sendWith(client, ["PING"]);
      return client.nodes("master").map((node): Send => (command) => sendWith(node, command));
    },
  };
}

/** For objects that have no pipelines: commands that are sent in one step go over one connection, unless it is lost just then. */
const atOnce = (send: Send, commands: readonly Command[]): Promise<readonly unknown[]> => Promise.all(commands.map(send));

const REDIRECTIONS = 16;
const TRY_AGAIN_MS = 50;

/** Runs a pipeline that a node of a cluster may refuse because the key is, or is about to be, on another node: clients follow such answers for single commands only. */
async function redirected(
  once: RedisConnection["pipeline"],
  send: RedisConnection["send"],
  key: string,
  commands: readonly Command[],
): Promise<readonly unknown[]> {
  for (let nth = 1; ; nth++) {
    try {
      return await once(key, commands);
    } catch (error) {
      const [refusal] = /^(MOVED|ASK|TRYAGAIN)\b/.exec(error instanceof Error ? error.message : "") ?? [];
      if (refusal === undefined || nth === REDIRECTIONS) throw error;
      // While the key moves to another node, the client finds it for one command. The commands after it would be sent to the old node.
      if (refusal === "ASK") return [await send(key, commands[0]!)];
      if (refusal === "TRYAGAIN") await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
      // With the answer to a single command the client learns which node has the key now.
      else await send(key, ["EXISTS", key]);
    }
  }
}

const PATIENCE_MS = 500;

/**
 * node-redis keeps commands for a node that is gone until the node is back, and does not look whether a replica has taken its place.
 * It looks when another node says that a key has moved. So if an answer takes long, other nodes are asked for the key.
 */
function watching(ask: (key: string) => readonly Promise<unknown>[]): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  let lookedAt = -Infinity;
  const look = (key: string): void => {
    if (performance.now() - lookedAt < PATIENCE_MS) return;
    lookedAt = performance.now();
    // The answers do not matter, and nodes that are gone do not answer.
    for (const answer of ask(key)) answer.catch(() => {});
  };
  return async (key, work) => {
    const timer = setInterval(() => look(key), PATIENCE_MS);
    timer.unref();
    try {
      return await work();
    } catch (error) {
      look(key);
      throw error;
    } finally {
      clearInterval(timer);
    }
  };
}

function wrong(message: string, hint: string): LockgateError {
  return new LockgateError("OPTIONS", message, { hint });
}
