// The types of the stores, with common clients. Compiled by types.test.mjs, never run.
import { Cluster, Redis } from "ioredis";
import mysql from "mysql2/promise";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { createAgent, demoModel } from "lockgate";
import type { Batch, Store } from "lockgate";
import { durableObjectStore } from "lockgate/stores/cloudflare";
import { fileStore } from "lockgate/stores/node";
import { redisStore } from "lockgate/stores/redis";
import { sqlStore } from "lockgate/stores/sql";
import { faultyStore, storeRules } from "lockgate/testing";

const client = await createClient({ url: "redis://127.0.0.1" }).connect();
const pool = mysql.createPool({ host: "127.0.0.1" });
const connection = await mysql.createConnection({ host: "127.0.0.1" });
export const stores: readonly Store[] = [
  fileStore("./.lockgate"),
  redisStore(client),
  redisStore(createClientPool(), { prefix: "my-app:" }),
  redisStore(createCluster({ rootNodes: [] })),
  redisStore(createSentinel({ name: "main", sentinelRootNodes: [] }), { minReplicas: 1 }),
  redisStore(new Redis()),
  redisStore(new Redis({ name: "main", sentinels: [] })),
  redisStore(new Cluster([])),
  sqlStore(pool, { dialect: "mysql" }),
  sqlStore(connection, { dialect: "mysql", table: "sessions" }),
];
createAgent({ name: "helper", model: demoModel(), store: redisStore(client) });

// @ts-expect-error a file store has a folder
fileStore();
// @ts-expect-error an empty object is not a client
redisStore({});
// @ts-expect-error the dialect is missing
sqlStore(pool, {});
// @ts-expect-error there is no such dialect
sqlStore(pool, { dialect: "oracle" });

interface Storage {
  get<T>(keys: string[]): Promise<Map<string, T>>;
  transaction<T>(work: (txn: { rollback(): void }) => Promise<T>): Promise<T>;
}
declare const storage: Storage;
export const edge: Store = durableObjectStore(storage);

for (const { name, skip, run } of storeRules(() => fileStore("rules"))) {
  const reason: string | null = skip;
  const proof: Promise<void> = run();
  void [name.length, reason, proof];
}
storeRules(async (beside) => (beside === undefined ? fileStore("one") : fileStore("one")));
faultyStore(edge, (operation, nth, batch?: Batch) =>
  operation === "commit" && nth === 2 && batch !== undefined ? "fail-after" : { delayMs: 5 },
);
// @ts-expect-error a plan returns a fault
faultyStore(edge, () => "explode");
