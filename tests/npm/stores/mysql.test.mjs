// MariaDB under real conditions: not strict, odd character sets, deadlocks, small packets, restarts during a turn.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import mysql from "mysql2/promise";
import { packedModule } from "../support/project.mjs";
import { startMariaDb, startProxy, withoutMariaDb } from "../support/servers.mjs";

const { createAgent, customModel, textOf } = await packedModule("lockgate");
const { storeRules } = await packedModule("lockgate/testing");
const { sqlStore } = await packedModule("lockgate/stores/sql");

const dialect = "mysql";
const put = (revision, key = "a/u/x", value = "1") => ({
  revision,
  put: [{ key, value: new TextEncoder().encode(value) }],
  remove: [],
});
const expecting = (batch, revision, key = "a/u/x") => ({ ...batch, expect: { key, revision } });
const refused = (promise) =>
  promise.then(
    () => assert.fail("it was expected to fail"),
    (error) => error,
  );
const echo = (meanwhile = () => {}) =>
  customModel({
    id: "echo",
    async *generate({ messages }) {
      await meanwhile(textOf(messages.at(-1)));
      yield { type: "text", text: `to ${textOf(messages.at(-1))}` };
    },
  });
const slot = { userId: "alice", sessionId: "s" };
const told = async (agent) => (await agent.history(slot)).map((message) => textOf(message));

describe("MariaDB", { skip: withoutMariaDb }, () => {
  let mariadb, pool;
  let nTables = 0;
  const poolOf = (options = {}) =>
    mysql.createPool({ ...mariadb.options, database: "lockgate", connectionLimit: 4, ...options });
  const table = () => `t${++nTables}`;
  before(async () => {
    mariadb = await startMariaDb(["--max-allowed-packet=4M", "--innodb-lock-wait-timeout=1"]);
    const first = await mysql.createConnection(mariadb.options);
    await first.query("CREATE DATABASE lockgate");
    await first.end();
    pool = poolOf({ connectionLimit: 16 });
  });
  after(async () => {
    await pool?.end();
    await mariadb?.stop();
  });

  test("storage() says whether a crash of the server loses turns, by its settings", async () => {
    const agent = await createAgent({ name: "helper", model: echo(), store: sqlStore(pool, { dialect, table: table() }) });
    assert.deepEqual(await agent.storage().then(({ durability, warnings }) => [durability, warnings]), ["durable", []]);
    for (const value of [0, 2]) {
      await pool.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${value}`);
      const { durability, warnings } = await agent.storage();
      assert.equal(durability, "not-durable");
      assert.match(warnings.join(), /innodb_flush_log_at_trx_commit/);
    }
    await pool.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    const loose = sqlStore(pool, { dialect, table: "loose" });
    await pool.query("CREATE TABLE loose (k VARBINARY(512) NOT NULL PRIMARY KEY, revision VARBINARY(255) NOT NULL, v LONGBLOB NOT NULL) ENGINE=MyISAM");
    assert.equal((await loose.report()).durability, "not-durable");
    const silent = { query: async (text) => (text.includes("@@") ? Promise.reject(new Error("unknown system variable")) : pool.query(text)) };
    assert.equal((await sqlStore(silent, { dialect, table: table() }).report()).durability, "unknown");
  });

  test("storage() says that a binary log that is not synced loses turns", async () => {
    const own = await startMariaDb(["--log-bin=bin", "--sync-binlog=0"]);
    const using = mysql.createPool(own.options);
    const { durability, warnings } = await sqlStore(using, { dialect, table: table() }).report();
    assert.equal(durability, "not-durable");
    assert.match(warnings.join(), /sync_binlog is 0/);
    await using.query("SET GLOBAL sync_binlog = 1");
    assert.equal((await sqlStore(using, { dialect, table: table() }).report()).durability, "durable");
    await using.end();
    await own.stop();
  });

  //
  test("percent signs, underscores, quotes and backslashes in ids are ordinary characters", async () => {
    const lax = poolOf();
    await lax.query("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
    const fresh = poolOf();
    const store = sqlStore(fresh, { dialect, table: table() });
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const users = ["%", "_", "a_c", "abc", "'; DROP TABLE t1; --", '" OR 1=1', "\\' OR 1=1 -- ", "`", "\\"];
    for (const userId of users) await agent.call(`I am ${userId}`, { userId, sessionId: "%" });
    for (const userId of users) {
      const history = await agent.history({ userId, sessionId: "%" });
      assert.equal(textOf(history[0]), `I am ${userId}`);
      assert.equal((await agent.listSessions(userId)).length, 1);
    }
    await lax.query("SET GLOBAL sql_mode = DEFAULT");
    await Promise.all([lax.end(), fresh.end()]);
  });

  //
  test("a table name with other characters than letters, digits and _ is refused at once", () => {
    for (const name of ["a b", "t; DROP TABLE x", "`", "", "x".repeat(65), "1t", "t-1", 7])
      assert.throws(() => sqlStore(pool, { dialect, table: name }), { code: "OPTIONS" });
    assert.throws(() => sqlStore(pool, { dialect: "oracle" }), { code: "OPTIONS" });
    assert.throws(() => sqlStore(pool), { code: "OPTIONS" });
    assert.throws(() => sqlStore({}, { dialect }), { code: "OPTIONS" });
  });

  //
  test("every rule is kept by a server that is not strict and speaks latin1", async () => {
    const lax = poolOf({ charset: "latin1_swedish_ci" });
    await pool.query("SET GLOBAL sql_mode = ''");
    const places = new WeakMap();
    const makeStore = (beside) => {
      const place = places.get(beside) ?? table();
      const store = sqlStore(lax, { dialect, table: place });
      places.set(store, place);
      return store;
    };
    for (const rule of storeRules(makeStore)) await rule.run();
    const store = makeStore();
    const emoji = "👩‍👩‍👧 \0 grüße ｆｕｌｌ";
    await store.commit(put("r1", "a/u/x", emoji));
    assert.equal(new TextDecoder().decode((await store.get(["a/u/x"]))[0].value), emoji);
    const long = `a/u/${"x".repeat(509)}`;
    assert.equal((await refused(store.commit(put("r1", long)))).code, "INPUT_INVALID");
    assert.equal((await refused(store.get([long]))).code, "INPUT_INVALID");
    assert.equal((await refused(store.commit(put("r".repeat(256))))).code, "INPUT_INVALID");
    await pool.query("SET GLOBAL sql_mode = DEFAULT");
    await lax.end();
  });

  //
  test("sixteen writers on one key and on neighbouring keys all succeed in spite of deadlocks", async () => {
    const store = sqlStore(pool, { dialect, table: table() });
    const count = async (who) => {
      for (let n = 0; n < 10; n++) {
        for (;;) {
          const [found] = await store.get(["a/u/count"]);
          const value = String(Number(found ? new TextDecoder().decode(found.value) : 0) + 1);
          const batch = put(`${who}.${n}`, "a/u/count", value);
          batch.removePrefix = [`a/u/w${who}/`];
          batch.put.push({ key: `a/u/w${who}/${n}`, value: batch.put[0].value });
          const revision = found?.revision ?? null;
          if ((await store.commit(expecting(batch, revision, "a/u/count"))) === "ok") break;
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, who) => count(who)));
    const [found] = await store.get(["a/u/count"]);
    assert.equal(new TextDecoder().decode(found.value), "160");
    assert.equal((await store.list("a/u/w")).length, 16);
  });

  //
  test("a lock that is never released is tried four times and then STORE_UNAVAILABLE, with nothing changed", async () => {
    const name = table();
    const store = sqlStore(pool, { dialect, table: name });
    await store.commit(put("r1"));
    const holder = await mysql.createConnection({ ...mariadb.options, database: "lockgate" });
    await holder.query("START TRANSACTION");
    await holder.query(`SELECT * FROM ${name} FOR UPDATE`);
    const error = await refused(store.commit(expecting(put("r2"), "r1")));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.equal(error.cause.errno, 1205);
    await holder.query("ROLLBACK");
    assert.equal((await store.get(["a/u/x"]))[0].revision, "r1");
    assert.equal(await store.commit(expecting(put("r2"), "r1")), "ok");
    await holder.end();
  });

  // R-13, S-09
  test("a batch larger than a packet is sent in several packets, and a record larger than one packet is STATE_TOO_LARGE before anything is stored", async () => {
    const store = sqlStore(pool, { dialect, table: table() });
    const value = new Uint8Array(1_000_000).fill(7);
    const batch = { revision: "r1", put: [], remove: [] };
    for (let n = 0; n < 8; n++) batch.put.push({ key: `a/u/${n}`, value });
    assert.equal(await store.commit(batch), "ok");
    assert.equal((await store.list("a/u/")).length, 8);
    const huge = new Uint8Array(2_200_000);
    const error = await refused(
      store.commit({ revision: "r2", put: [{ key: "a/u/0", value }, { key: "a/u/huge", value: huge }], remove: ["a/u/1"] }),
    );
    assert.equal(error.code, "STATE_TOO_LARGE");
    assert.match(error.hint, /max_allowed_packet/);
    assert.deepEqual(
      (await store.get(["a/u/0", "a/u/1", "a/u/huge"])).map((it) => it?.revision),
      ["r1", "r1", undefined],
    );
  });

  test("a single connection is shared in turns: reads never see a batch that is not committed", async () => {
    const connection = await mysql.createConnection({ ...mariadb.options, database: "lockgate" });
    const store = sqlStore(connection, { dialect, table: table() });
    await store.commit(put("r0"));
    const work = Array.from({ length: 40 }, (_, n) =>
      n % 2 ? store.get(["a/u/x", "a/u/y"]) : store.commit({ ...put(`r${n}`), put: [...put("", "a/u/x").put, ...put("", "a/u/y").put] }),
    );
    for (const found of await Promise.all(work)) {
      if (found === "ok") continue;
      const [x, y] = found;
      assert.equal(x.revision, y.revision);
    }
    await connection.end();
  });

  // R-06 for SQL: the server has committed, but the client gets no answer.
  test("a connection that is cut during COMMIT neither loses nor doubles the turn", async () => {
    const proxy = await startProxy(mariadb.port);
    const through = poolOf({ port: proxy.port });
    const store = sqlStore(through, { dialect, table: table() });
    let isLast = false;
    const cutting = () => {
      isLast = true;
    };
    const agent = await createAgent({ name: "helper", model: echo(() => isLast && proxy.cutAfter("COMMIT")), store });
    await agent.call("q1", slot);
    cutting();
    const outcome = await agent.call("q2", slot).catch((error) => error);
    isLast = false;
    await agent.call("q3", slot);
    assert.deepEqual(await told(agent), ["q1", "to q1", "q2", "to q2", "q3", "to q3"]);
    assert.equal(outcome.code, undefined, "the turn is stored, so the call is to resolve");
    await agent.close();
    await through.end();
    await proxy.close();
  });

  //
  test("a server that is killed and restarted during a turn is used again for the commit", async () => {
    const own = await startMariaDb();
    const through = mysql.createPool({ ...own.options, connectionLimit: 2 });
    const restart = async (said) => {
      if (said !== "q2") return;
      await own.kill();
      await own.start();
    };
    const store = sqlStore(through, { dialect });
    const agent = await createAgent({ name: "helper", model: echo(restart), store });
    for (const said of ["q1", "q2", "q3"]) await agent.call(said, slot);
    assert.deepEqual(await told(agent), ["q1", "to q1", "q2", "to q2", "q3", "to q3"]);
    await agent.close();
    await own.kill();
    const error = await refused(store.get(["a/u/x"]));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.ok(error.retryable && error.hint && error.cause instanceof Error);
    await through.end().catch(() => {});
  });

  test("a client without promises is refused with a hint that names the right import", async () => {
    const { createConnection } = await import("mysql2");
    const callbacks = createConnection(mariadb.options).on("error", () => {});
    const error = await refused(sqlStore(callbacks, { dialect }).get(["a/u/x"]));
    assert.equal(error.code, "OPTIONS");
    assert.match(error.hint, /mysql2\/promise/);
    callbacks.destroy();
  });
});
