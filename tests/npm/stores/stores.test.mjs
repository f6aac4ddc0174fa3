// Every rule on every store: memory, files, Redis by both clients, MariaDB by a connection and by a pool, and Durable
// Objects of both kinds in workerd. At the end, a table of what passed and what was skipped, and why.
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import { createClient } from "redis";
import { packedModule } from "../support/project.mjs";
import { quickFolder, startMariaDb, startRedis, withoutMariaDb, withoutRedis } from "../support/servers.mjs";
import { startWorker } from "../support/worker.mjs";

const { createAgent, customModel, memoryStore, textOf } = await packedModule("lockgate");
const { storeRules } = await packedModule("lockgate/testing");
const { fileStore } = await packedModule("lockgate/stores/node");
const { redisStore } = await packedModule("lockgate/stores/redis");
const { sqlStore } = await packedModule("lockgate/stores/sql");

const table = [];
let nPlaces = 0;

/** Makes stores in new places, or a second store over the place of a given one. */
function maker(open) {
  const places = new WeakMap();
  return (beside) => {
    const place = places.get(beside) ?? `p${++nPlaces}`;
    const store = open(place);
    places.set(store, place);
    return store;
  };
}

/** Runs every rule, and shows that users whose names look alike are different users. */
function holdToTheRules(name, makeStore) {
  const row = { name, passed: 0, skipped: {} };
  table.push(row);
  test(`${name}: every rule is kept`, async () => {
    for (const rule of storeRules(makeStore)) {
      await rule.run();
      note(row, rule.skip);
    }
  });
  // I-01, I-02, I-03, I-04, I-07, R-07: the same in every store, through a real agent.
  test(`${name}: users whose names look alike are different users`, async () => {
    assert.deepEqual(await askAll(makeStore(), LOOK_ALIKE), expectedOfAll);
  });
  // S-09, R-13
  test(`${name}: a message larger than its cells comes back whole`, async () => {
    assert.deepEqual(await askMuch(makeStore()), expectedOfMuch);
  });
  // S-13
  test(`${name}: for random puts and removals it answers like the memory store`, () =>
    compareWithMemory(makeStore()));
  // S-02
  test(`${name}: a record that is read while it is written is never half old and half new`, () =>
    readWhileWritten(makeStore()));
}

/** Names that a store or codec could confuse with each other or with its own syntax. */
const LOOK_ALIKE = [
  ...["Alice", "álice", "alice", "alice ", "ａlice"],
  ...["é", "e\u0301", "w6k", "-c3-a9", "t.-c3-a9"],
  ...["a/b", "a", "..", "__proto__", "constructor"],
  ...["__anon__", "anonymous", "null", "undefined", "%", "_", "*", "😀"],
];
const expectedOfAll = LOOK_ALIKE.map((userId) => ({
  said: [`I am ${userId}`, `to I am ${userId}`],
  sessions: 1,
}));

// The Worker below contains this function too, so it uses nothing else of this file.
async function askAll(store, users) {
  const generate = async function* ({ messages }) {
    yield { type: "text", text: `to ${textOf(messages.at(-1))}` };
  };
  const model = customModel({ id: "m", generate });
  const agent = await createAgent({ name: "helper", model, store });
  await Promise.all(
    users.map((userId) => agent.call(`I am ${userId}`, { userId, sessionId: "s" })),
  );
  const found = [];
  for (const userId of users) {
    const said = (await agent.history({ userId, sessionId: "s" })).map((message) => textOf(message));
    found.push({ said, sessions: (await agent.listSessions(userId)).length });
  }
  await agent.close();
  await store.close?.();
  return found;
}

// Also part of the Worker below.
async function askMuch(store) {
  const much = "much ".repeat(500_000);
  const generate = async function* ({ messages }) {
    yield { type: "text", text: textOf(messages.at(-1)).toUpperCase() };
  };
  const model = customModel({ id: "m", generate });
  const slot = { userId: "alice", sessionId: "much" };
  const before = await createAgent({ name: "helper", model, store });
  await before.call(much, slot);
  const agent = await createAgent({ name: "helper", model, store });
  const [said, answer] = (await agent.history(slot)).map((message) => textOf(message));
  const isWhole = said === much && answer === much.toUpperCase();
  await agent.deleteSession(slot);
  const left = (await agent.history(slot)).length;
  await store.close?.();
  return { isWhole, left };
}
const expectedOfMuch = { isWhole: true, left: 0 };

/** Applies random batches with many common keys to the store and to a memory store; then compares the lists of both. */
async function compareWithMemory(store) {
  const oracle = memoryStore();
  let seed = 42;
  const chance = (n) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % n;
  const user = () => ["a/u", "a/v"][chance(2)];
  for (let n = 0; n < 60; n++) {
    const place = user();
    const key = () => `${place}/${["k", "k/l", "m"][chance(3)]}/${chance(4)}`;
    const [known] = await oracle.get([`${place}/m/1`]);
    const expect = { key: `${place}/m/1`, revision: [known?.revision ?? null, null, "r0"][chance(3)] };
    const batch = {
      revision: `r${n}`,
      put: [...new Set([key(), key()])].map((each) => ({ key: each, value: new Uint8Array([n]) })),
      remove: chance(2) ? [key()] : [],
      ...(chance(6) === 0 && { removePrefix: [`${place}/${["k/", "m/", ""][chance(3)]}`] }),
      ...(chance(2) && { expect }),
    };
    assert.equal(await store.commit(batch), await oracle.commit(batch), JSON.stringify(batch));
    const page = { limit: 1 + chance(9), ...(chance(2) && { after: key() }) };
    const prefix = ["", "a/", `${place}/`, `${place}/k`, `${place}/k/`][chance(5)];
    assert.deepEqual(await store.list(prefix, page), await oracle.list(prefix, page), prefix);
  }
  const whole = await oracle.list("");
  assert.deepEqual(await store.list(""), whole);
  const keys = whole.map(({ key }) => key);
  assert.deepEqual(await store.get(keys), await oracle.get(keys));
  await store.close?.();
}

async function readWhileWritten(store) {
  const writes = async () => {
    for (let n = 0; n < 40; n++) {
      const value = new TextEncoder().encode(`r${n}`.repeat(200));
      await store.commit({ revision: `r${n}`, put: [{ key: "a/u/x", value }], remove: [] });
    }
  };
  let isDone = false;
  const written = writes().finally(() => (isDone = true));
  while (!isDone) {
    const records = [...(await store.get(["a/u/x"])), ...(await store.list("a/u/"))];
    for (const record of records.filter((each) => each !== null))
      assert.equal(new TextDecoder().decode(record.value), record.revision.repeat(200));
  }
  await written;
  await store.close?.();
}

holdToTheRules("memory", maker(() => memoryStore()));

const root = quickFolder("files");
holdToTheRules("files", maker((place) => fileStore(`${root}/${place}`)));

describe("Redis", { skip: withoutRedis }, () => {
  let redis, node, io;
  before(async () => {
    redis = await startRedis();
    node = await createClient({ url: redis.url }).connect();
    io = new Redis(redis.url);
  });
  after(async () => {
    await node?.close();
    await io?.quit();
    await redis?.stop();
  });
  holdToTheRules("Redis by redis", maker((place) => redisStore(node, { prefix: `${place}:` })));
  holdToTheRules("Redis by ioredis", maker((place) => redisStore(io, { prefix: `${place}:` })));
});

describe("MariaDB", { skip: withoutMariaDb }, () => {
  let mariadb, connection, pool;
  before(async () => {
    mariadb = await startMariaDb();
    connection = await mysql.createConnection(mariadb.options);
    await connection.query("CREATE DATABASE lockgate");
    await connection.changeUser({ database: "lockgate" });
    pool = mysql.createPool({ ...mariadb.options, database: "lockgate", connectionLimit: 8 });
  });
  after(async () => {
    await connection?.end();
    await pool?.end();
    await mariadb?.stop();
  });
  const dialect = "mysql";
  holdToTheRules("MariaDB by a connection", maker((table) => sqlStore(connection, { dialect, table })));
  holdToTheRules("MariaDB by a pool", maker((table) => sqlStore(pool, { dialect, table })));
});

const worker = `
import { createAgent, customModel, textOf } from "lockgate";
import { durableObjectStore } from "lockgate/stores/cloudflare";
import { storeRules } from "lockgate/testing";

${askAll}
${askMuch}

class Stored {
  constructor({ storage }) {
    this.makeStore = () => durableObjectStore(storage);
  }

  async fetch(request) {
    try {
      return Response.json(await this.answer(await request.json()));
    } catch (error) {
      return new Response(String(error.stack ?? error), { status: 500 });
    }
  }

  async answer({ users, rule, much }) {
    if (users) return askAll(this.makeStore(), users);
    if (much) return askMuch(this.makeStore());
    const proof = storeRules(this.makeStore)[rule];
    await proof.run();
    return { skip: proof.skip };
  }
}
export class KeyValue extends Stored {}
export class Sqlite extends Stored {}
export default {
  fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const objects = env[pathname.slice(1)];
    return objects.get(objects.idFromName(searchParams.get("object"))).fetch(request);
  },
};
`;

describe("Durable Objects", () => {
  let miniflare;
  before(async () => {
    const durableObjects = { kv: "KeyValue", sqlite: { className: "Sqlite", useSQLite: true } };
    ({ miniflare } = await startWorker(worker, { durableObjects }));
  });
  after(() => miniflare?.dispose());

  const ask = async (kind, object, asked) => {
    const url = `http://worker/${kind}?object=${object}`;
    const response = await miniflare.dispatchFetch(url, { method: "POST", body: JSON.stringify(asked) });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };

  const holdObjectsToTheRules = (name, kind) => {
    const row = { name, passed: 0, skipped: {} };
    table.push(row);
    test(`${name}: every rule is kept`, async () => {
      for (const [rule] of storeRules(memoryStore).entries()) {
        note(row, (await ask(kind, `rule ${rule}`, { rule })).skip);
      }
    });
    test(`${name}: users whose names look alike are different users`, async () => {
      assert.deepEqual(await ask(kind, "people", { users: LOOK_ALIKE }), expectedOfAll);
    });
    // W-13
    test(`${name}: a message larger than its cells comes back whole`, async () => {
      assert.deepEqual(await ask(kind, "much", { much: true }), expectedOfMuch);
    });
  };
  holdObjectsToTheRules("Durable Object, key-value", "kv");
  holdObjectsToTheRules("Durable Object, SQLite", "sqlite");
});

function note(row, skip) {
  if (skip === null) row.passed += 1;
  else row.skipped[skip] = (row.skipped[skip] ?? 0) + 1;
}

process.on("exit", () => {
  const all = storeRules(memoryStore).length;
  console.log(`\nstore                       of ${all} rules: passed, skipped`);
  for (const { name, passed, skipped } of table) {
    const reasons = Object.entries(skipped).map(([reason, n]) => `${n} (${reason})`);
    console.log(`${name.padEnd(38)}${String(passed).padStart(10)}  ${reasons.join(", ") || "0"}`);
  }
});
