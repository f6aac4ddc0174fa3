// What the settings of the servers say about how long records stay.

import { setTimeout } from "node:timers/promises";

import type { StoreReport } from "../../types/store.js";
import { messageOf, text, withTypedErrors } from "./errors.js";
import type { RedisConnection, Send } from "./client.js";

/** What is known about one master. */
export interface ServerSettings {
  /** The policy that evicts keys which have no expiry, if there is one and a limit of memory. */
  readonly evicts: string | undefined;
  /** Undefined: not known. */
  readonly isDurable: boolean | undefined;
  /** What may be lost, and the setting to change. Or why nothing is known. */
  readonly warning: string | undefined;
  /** The number of connected replicas. Undefined: not known. */
  readonly replicas: number | undefined;
}

/** Until a server must answer. A client may keep commands for a server that is gone. */
const PATIENCE_MS = 2_000;

const NO_ANSWER: ServerSettings = { evicts: undefined, isDurable: undefined, warning: "a Redis server does not answer, so it is not known how durable it is", replicas: undefined };

/** Asks each master for its settings. */
export async function settingsOf(connection: RedisConnection): Promise<readonly ServerSettings[]> {
  const settings = connection.masters().then((masters) => Promise.all(masters.map((send) => orNoAnswer(askedFor(send)))));
  return (await orNothing(settings)) ?? [NO_ANSWER];
}

/** How commits wait for replicas. `minReplicas` undefined: for those that are connected. */
export interface Waiting {
  readonly kind: RedisConnection["kind"];
  readonly minReplicas: number | undefined;
  readonly canWait: boolean;
}

/** The report for `storage()`. */
export function reportOf(all: readonly ServerSettings[], { kind, minReplicas, canWait }: Waiting): StoreReport {
  const warnings = new Set(all.flatMap(({ warning }) => warning ?? []));
  const isUnguarded = kind !== "server" && (minReplicas === 0 || !canWait);
  if (isUnguarded) {
    warnings.add(`if a replica takes over for its master, the last turns are lost, because commits do not wait for replicas: ${canWait ? "leave out minReplicas: 0" : "this Redis does not allow WAIT"}`);
  }
  const evicting = all.find(({ evicts }) => evicts !== undefined)?.evicts;
  if (evicting !== undefined) warnings.add(`Redis evicts keys (maxmemory-policy ${evicting}): set maxmemory-policy to noeviction`);
  if (kind === "server" && minReplicas === 0 && all.some(({ replicas = 0 }) => replicas > 0)) {
    warnings.add("this Redis has replicas, and commits do not wait for them: if one may take over, connect through Sentinel or set minReplicas: 1");
  }
  if (kind !== "server" && all.some(({ replicas }) => replicas === 0)) {
    warnings.add("a Redis master has no connected replica, so nothing takes over for it now");
  }
  const isLost = isUnguarded || all.some(({ isDurable }) => isDurable === false);
  const durability = evicting !== undefined ? "may-be-evicted" : isLost ? "not-durable" : all.every(({ isDurable }) => isDurable === true) ? "durable" : "unknown";
  return { durability, warnings: [...warnings] };
}

/** Asks a server. A server may refuse both questions; the store works there too. */
async function askedFor(send: Send): Promise<ServerSettings> {
  const info = await withTypedErrors(() => send(["INFO"])).then(text, ignoreRefusal);
  const config = pairs(await withTypedErrors(() => send(["CONFIG", "GET", "*append*"])).catch(ignoreRefusal));
  const said = (name: string): string | undefined => new RegExp(`(?:^|\\n)${name}:([^\\r\\n]*)`).exec(info ?? "")?.[1];
  const policy = said("maxmemory_policy") ?? "noeviction";
  const replicas = said("connected_slaves");
  return {
    evicts: Number(said("maxmemory") ?? 0) > 0 && policy.startsWith("allkeys") ? policy : undefined,
    replicas: replicas === undefined ? undefined : Number(replicas),
    ...durabilityOf(config, said("aof_enabled")),
  };
}

function durabilityOf(config: ReadonlyMap<string, string>, isAppending: string | undefined): Pick<ServerSettings, "isDurable" | "warning"> {
  const appends = config.get("appendonly") ?? (isAppending === undefined ? undefined : isAppending === "1" ? "yes" : "no");
  if (appends === "no") {
    return { isDurable: false, warning: "Redis keeps no append-only file: a crash loses the turns since its last snapshot. Set appendonly to yes and appendfsync to always" };
  }
  const syncs = config.get("appendfsync");
  if (appends === undefined || syncs === undefined) {
    return { isDurable: undefined, warning: "Redis does not tell its settings (CONFIG or INFO is not allowed), so it is not known whether a crash loses turns: appendonly must be yes and appendfsync always" };
  }
  if (syncs !== "always") return { isDurable: false, warning: `a crash of the Redis machine loses the last turns (appendfsync is ${syncs}): set appendfsync to always` };
  if (config.get("no-appendfsync-on-rewrite") === "yes") {
    return { isDurable: false, warning: "a crash of the Redis machine while the append-only file is rewritten loses turns: set no-appendfsync-on-rewrite to no" };
  }
  return { isDurable: true, warning: undefined };
}

/** The answer of CONFIG GET as a map. Servers answer with pairs, or with a map in the newer protocol. */
function pairs(answer: unknown): ReadonlyMap<string, string> {
  const flat = Array.isArray(answer) ? answer : answer instanceof Map ? [...answer].flat() : Object.entries(answer ?? {}).flat();
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < flat.length; at += 2) found.set(text(flat[at]) ?? "", text(flat[at + 1]) ?? "");
  return found;
}

/** Some servers do not allow clients to read settings. */
function ignoreRefusal(error: unknown): null {
  if (/NOPERM|unknown command|not allowed|no permissions/i.test(messageOf((error as { readonly cause?: unknown }).cause))) return null;
  throw error;
}

const orNoAnswer = async (asked: Promise<ServerSettings>): Promise<ServerSettings> => (await orNothing(asked)) ?? NO_ANSWER;

/** The answer, or undefined if it takes too long. */
async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  const given = new AbortController();
  const late = setTimeout(PATIENCE_MS, undefined, { signal: given.signal }).catch(() => undefined);
  try {
    return await Promise.race([asked, late]);
  } finally {
    given.abort();
  }
}
