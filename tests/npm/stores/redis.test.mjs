// Redis under real conditions: without an append-only file, evicting, full, restarted, in a cluster, disconnected during an answer.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { packedModule } from "../support/project.mjs";
import { startProxy, startRedis, withoutRedis } from "../support/servers.mjs";

const { createAgent, customModel, textOf } = await packedModule("lockgate");
const { storeRules } = await packedModule("lockgate/testing");
const { redisStore } = await packedModule("lockgate/stores/redis");

const put = (revision, key = "a/u/x", value = "1") => ({
  revision,
  put: [{ key, value: new TextEncoder().encode(value) }],
  remove: [],
});
const echo = (meanwhile = () => {}) =>
  customModel({
    id: "echo",
    async *generate({ messages }) {
      await meanwhile(textOf(messages.at(-1)));
      yield { type: "text", text: `to ${textOf(messages.at(-1))}` };
    },
  });
const refused = (promise) =>
  promise.then(
    () => assert.fail("it was expected to fail"),
    (error) => error,
  );
const slot = { userId: "alice", sessionId: "s" };
const told = async (agent) => (await agent.history(slot)).map((message) => textOf(message));

/** A client that reconnects after its server was down, as both clients do by default. */
async function connect(port) {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => {});
  return client.connect();
}

describe("Redis", { skip: withoutRedis }, () => {
  let redis, client, prefix;
  before(async () => {
    redis = await startRedis();
    client = await connect(redis.port);
  });
  after(async () => {
    client?.destroy();
    await redis?.stop();
  });
  const fresh = (using = client) => {
    prefix = `p${process.hrtime.bigint()}:`;
    return redisStore(using, { prefix });
  };

  //
  test("a server that logs every write keeps acknowledged turns through kill -9, and the store reports disk", async () => {
    const own = await startRedis();
    const using = await connect(own.port);
    const store = redisStore(using);
    assert.equal(store.capabilities.durability, "process", "unknown before the first request");
    for (let n = 0; n < 50; n++) await store.commit(put(`r${n}`, `a/u/${n}`));
    assert.equal(store.capabilities.durability, "disk");
    await own.kill();
    await own.start();
    assert.equal((await store.list("a/u/")).length, 50);
    using.destroy();
    await own.stop();
  });

  //
  test("a server without a log loses everything when it is killed, and the store never reports disk", async () => {
    const own = await startRedis({ appendonly: "no" });
    const using = await connect(own.port);
    const store = redisStore(using);
    await store.commit(put("r1"));
    assert.equal(store.capabilities.durability, "process");
    await own.kill();
    await own.start();
    assert.deepEqual(await store.list("a/u/"), []);
    using.destroy();
    await own.stop();
  });

  test("R-01: a server that syncs once a second is never reported as disk, and after a kill the remaining turns have no gaps", async () => {
    const own = await startRedis({ appendfsync: "everysec" });
    const using = await connect(own.port);
    const store = redisStore(using);
    for (let n = 100; n < 150; n++) await store.commit(put(`r${n}`, `a/u/${n}`));
    assert.equal(store.capabilities.durability, "process");
    await own.kill();
    await own.start();
    const left = (await store.list("a/u/")).map(({ key }) => key);
    assert.deepEqual(left, left.map((_, n) => `a/u/${100 + n}`));
    using.destroy();
    await own.stop();
  });

  //
  test("stars, question marks and brackets in ids are ordinary characters, and keys are never searched", async () => {
    const agent = await createAgent({ name: "a*", model: echo(), store: fresh() });
    const users = ["*", "a?c", "abc", "[a-z]bc", "{a}", "a*"];
    for (const userId of users) await agent.call(`I am ${userId}`, { userId, sessionId: "s*" });
    for (const userId of users) {
      const history = await agent.history({ userId, sessionId: "s*" });
      assert.equal(textOf(history[0]), `I am ${userId}`);
      assert.equal((await agent.listSessions(userId)).length, 1);
    }
    await redisStore(client, { prefix }).list("");
    const stats = await client.sendCommand(["INFO", "commandstats"]);
    assert.ok(stats.includes("cmdstat_evalsha"));
    assert.doesNotMatch(stats, /cmdstat_(keys|scan|hscan|zscan|sscan)\b/);
  });

  //
  test("in a cluster every batch stays on one node", async () => {
    const own = await startRedis({ "cluster-enabled": "yes" });
    const using = await connect(own.port);
    await using.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    while (!(await using.sendCommand(["CLUSTER", "INFO"])).includes("cluster_state:ok"));
    const crossing = ["EVAL", "return redis.call('GET', KEYS[1])", "2", "a", "b"];
    assert.match((await refused(using.sendCommand(crossing))).message, /CROSSSLOT/);
    let n = 0;
    const places = new WeakMap();
    const makeStore = (beside) => {
      const place = places.get(beside) ?? `c${++n}:`;
      const store = redisStore(using, { prefix: place });
      places.set(store, place);
      return store;
    };
    for (const rule of storeRules(makeStore)) await rule.run();
    using.destroy();
    await own.stop();
  });

  //
  test("a server that evicts keys is refused before anything is stored", async () => {
    const own = await startRedis({ maxmemory: "20mb", "maxmemory-policy": "allkeys-lru" });
    const using = await connect(own.port);
    for (const attempt of [(store) => store.commit(put("r1")), (store) => store.get(["a/u/x"])]) {
      const { code, hint, message } = await refused(attempt(redisStore(using)));
      assert.equal(code, "OPTIONS");
      assert.match(message, /allkeys-lru/);
      assert.match(hint, /noeviction/);
    }
    assert.equal(await using.sendCommand(["EXISTS", "lockgate:{a/u/}records"]), 0);
    using.destroy();
    await own.stop();
  });

  //
  test("records that the server evicted are STORE_CORRUPT, never a fresh session", async () => {
    for (const lost of [["records"], ["names"], ["records", "names"]]) {
      const store = fresh();
      await store.commit(put("r1"));
      for (const which of lost) await client.del(`${prefix}{a/u/}${which}`);
      for (const again of [store, redisStore(client, { prefix })]) {
        assert.equal((await refused(again.get(["a/u/x"]))).code, "STORE_CORRUPT", lost.join());
        assert.equal((await refused(again.list("a/u/"))).code, "STORE_CORRUPT", lost.join());
      }
    }
    const agent = await createAgent({ name: "helper", model: echo(), store: fresh() });
    await agent.call("hello", slot);
    await client.del(`${prefix}{1.t.helper/t.alice/}records`);
    const other = await createAgent({ name: "helper", model: echo(), store: redisStore(client, { prefix }) });
    assert.equal((await refused(other.call("again", slot))).code, "STORE_CORRUPT");
  });

  test("a user whose first records are written while another client reads is not reported as lost records", async () => {
    const writer = fresh();
    const whileReading = {
      async sendCommand(command) {
        if (command[0] === "ZSCORE") await writer.commit(put("r1"));
        return client.sendCommand(command);
      },
    };
    const reader = redisStore(whileReading, { prefix });
    assert.deepEqual(await reader.get(["a/u/x"]), [null]);
    assert.equal((await reader.get(["a/u/x"]))[0]?.revision, "r1");
  });

  test("a deleted user is not reported as lost records", async () => {
    const store = fresh();
    await store.commit(put("r1"));
    await store.commit({ revision: "r2", put: [], remove: [], removePrefix: ["a/u/"] });
    assert.deepEqual(await store.get(["a/u/x"]), [null]);
    assert.deepEqual(await store.list(""), []);
  });

  test("a full server is STORE_QUOTA, and nothing of the batch is stored", async () => {
    const own = await startRedis({ maxmemory: "3mb", "maxmemory-policy": "noeviction" });
    const using = await connect(own.port);
    const store = redisStore(using);
    await store.commit(put("r1", "a/u/kept", "kept"));
    const large = "x".repeat(200_000);
    let error;
    for (let n = 0; error === undefined; n++) {
      const batch = { ...put(`f${n}`, `a/u/${n}/1`, large) };
      batch.put.push({ key: `a/u/${n}/2`, value: batch.put[0].value });
      error = await store.commit(batch).then(
        () => undefined,
        (thrown) => thrown,
      );
    }
    assert.equal(error.code, "STORE_QUOTA");
    assert.ok(error.hint && error.cause);
    const listed = (await store.list("a/u/", { keysOnly: true })).map(({ key }) => key);
    const halves = listed.filter((key) => key.endsWith("/1") !== listed.includes(key.replace("/1", "/2")) && key.endsWith("/1"));
    assert.deepEqual(halves, []);
    assert.ok(listed.includes("a/u/kept"));
    using.destroy();
    await own.stop();
  });

  test("a server that forgets its scripts is sent them again", async () => {
    const store = fresh();
    await store.commit(put("r1"));
    await client.sendCommand(["SCRIPT", "FLUSH"]);
    assert.equal(await store.commit({ ...put("r2"), expect: { key: "a/u/x", revision: "r1" } }), "ok");
    await client.sendCommand(["SCRIPT", "FLUSH"]);
    assert.equal((await store.get(["a/u/x"]))[0].revision, "r2");
  });

  test("keys that another program uses are reported, and nothing is written", async () => {
    const store = fresh();
    await client.set(`${prefix}{a/u/}names`, "mine");
    assert.equal((await refused(store.commit(put("r1")))).code, "STORE_CORRUPT");
    assert.equal(await client.exists(`${prefix}{a/u/}records`), 0);
    assert.equal(await client.get(`${prefix}{a/u/}names`), "mine");
  });

  test("clients that answer with bytes, and ids of any script, are understood", async () => {
    const bytes = client.withTypeMapping({ 36: Buffer });
    const store = fresh(bytes);
    await store.commit(put("r1", "a/u/x", "\ufeffgrüße 😀\0"));
    const [found] = await store.get(["a/u/x"]);
    assert.equal(Buffer.from(found.value).toString(), "\ufeffgrüße 😀\0");
    assert.equal(found.revision, "r1");
    assert.equal((await store.list("a/"))[0].key, "a/u/x");
  });

  //
  test("a connection that is cut after the server has committed neither loses nor doubles the turn", async () => {
    const proxy = await startProxy(redis.port);
    const clients = {
      redis: await connect(proxy.port),
      // The client repeats requests without an answer, so the same batch arrives twice.
      ioredis: new Redis(proxy.port).on("error", () => {}),
    };
    for (const [name, using] of Object.entries(clients)) {
      const store = fresh(using);
      // The commit that ends the turn contains the answer.
      const agent = await createAgent({ name: "helper", model: echo(), store });
      await agent.call("q1", slot);
      proxy.cutAfter("to q2");
      const outcome = await agent.call("q2", slot).catch((error) => error);
      if (outcome.code !== undefined) assert.equal(outcome.code, "STORE_UNAVAILABLE", name);
      await agent.call("q3", slot);
      assert.deepEqual(await told(agent), ["q1", "to q1", "q2", "to q2", "q3", "to q3"], name);
      assert.equal(outcome.code, undefined, `${name}: the turn is stored, so the call is to resolve`);
      await agent.close();
    }
    clients.redis.destroy();
    clients.ioredis.disconnect();
    await proxy.close();
  });

  test("a server that is restarted during a turn is used again for the commit", async () => {
    const own = await startRedis();
    const using = await connect(own.port);
    const restart = async (said) => {
      if (said !== "q2") return;
      await own.kill();
      await own.start();
    };
    const agent = await createAgent({ name: "helper", model: echo(restart), store: redisStore(using) });
    for (const said of ["q1", "q2", "q3"]) await agent.call(said, slot);
    assert.deepEqual(await told(agent), ["q1", "to q1", "q2", "to q2", "q3", "to q3"]);
    await agent.close();
    using.destroy();
    await own.stop();
  });

  test("a server that is gone is STORE_UNAVAILABLE or STORE_TIMEOUT, with the cause, and nothing hangs", async () => {
    const own = await startRedis();
    const using = new Redis(own.port, { maxRetriesPerRequest: 1, retryStrategy: () => 1 }).on("error", () => {});
    const store = redisStore(using);
    await store.commit(put("r1"));
    await own.kill();
    const error = await refused(store.get(["a/u/x"]));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.ok(error.retryable && error.hint && error.cause instanceof Error);
    using.disconnect();
  });

  test("a value that is not a client, or a prefix with braces, is refused at once", () => {
    const io = new Redis({ lazyConnect: true });
    const replica = new Redis({ lazyConnect: true, name: "x", role: "slave", sentinels: [{ host: "127.0.0.1", port: 1 }] });
    const wrong = [{}, null, undefined, "redis://127.0.0.1", () => {}, Promise.resolve(client), client.multi(), io.pipeline(), replica, { sendCommand: "no" }];
    for (const given of wrong) assert.throws(() => redisStore(given), (error) => error.code === "OPTIONS" && error.hint !== undefined);
    for (const options of [{ prefix: "{x}" }, { prefix: 1 }, null, { minReplicas: -1 }, { minReplicas: "1" }, { minreplicas: 1 }])
      assert.throws(() => redisStore(client, options), { code: "OPTIONS" });
  });

  test("objects that only pass commands on are understood by the number of their arguments", async () => {
    const shapes = {
      one: { sendCommand: (args) => client.sendCommand(args) },
      sentinel: { sendCommand: (isReadonly, args) => client.sendCommand(args) },
      cluster: { sendCommand: (firstKey, isReadonly, args) => client.sendCommand(args) },
      ioredis: { call: (command, ...args) => client.sendCommand([command, ...args]) },
    };
    for (const [name, using] of Object.entries(shapes)) {
      const store = redisStore(using, { prefix: `${name}:` });
      assert.equal(await store.commit(put("r1")), "ok", name);
      assert.equal((await store.get(["a/u/x"]))[0].revision, "r1", name);
      assert.equal((await store.list("a/")).length, 1, name);
    }
  });

  test("every answer of a server that is being replaced is STORE_UNAVAILABLE, and the turn is stored once", async () => {
    const answers = [
      "CLUSTERDOWN The cluster is down", "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "TRYAGAIN Multiple keys request during rehashing of slot",
      "READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down",
      "NOREPLICAS Not enough good replicas to write.", "MISCONF Errors writing to the AOF file", "Socket closed unexpectedly", "Connection is closed.",
      "Disconnects client", "Too many Cluster redirections. Last error: Error: Connection is closed.", "Cannot read properties of undefined (reading 'master')",
    ];
    for (const answer of answers) {
      for (const when of ["before", "after"]) {
        let isFailing = false;
        const flaky = {
          async sendCommand(command) {
            const fails = isFailing && command.some((each) => String(each).includes("to q2"));
            if (fails) isFailing = false;
            if (fails && when === "before") throw new Error(answer);
            const done = await client.sendCommand(command);
            // The commit is applied, but its outcome is unknown.
            if (fails) throw new Error(answer);
            return done;
          },
        };
        const agent = await createAgent({ name: "helper", model: echo(), store: fresh(flaky) });
        await agent.call("q1", slot);
        isFailing = true;
        await agent.call("q2", slot);
        assert.equal(isFailing, false, `${answer}: the commit of the answer was to fail`);
        await agent.call("q3", slot);
        assert.deepEqual(await told(agent), ["q1", "to q1", "q2", "to q2", "q3", "to q3"], `${answer}, ${when}`);
      }
      const refusing = { sendCommand: async () => Promise.reject(new Error(answer)) };
      const { code, retryable, hint, cause } = await refused(redisStore(refusing).get(["a/u/x"]));
      assert.deepEqual([code, retryable, typeof hint, cause instanceof Error], ["STORE_UNAVAILABLE", true, "string", true], answer);
    }
  });

  test("a user whose first record is being written hides no other user from lists", async () => {
    const store = fresh();
    for (const user of ["b", "c"]) await store.commit(put("r1", `a/${user}/x`));
    // So far the writer has only announced its user.
    await client.zAdd(`${prefix}users`, { score: 0, value: "b/z/" });
    assert.deepEqual((await store.list("a/")).map(({ key }) => key), ["a/b/x", "a/c/x"]);
    assert.deepEqual((await store.list("a/", { after: "a/b/x" })).map(({ key }) => key), ["a/c/x"]);
  });

  describe("storage() says what is known about the server", () => {
    const reportOf = async (settings, prepare = () => {}) => {
      const own = await startRedis(settings);
      const using = await connect(own.port);
      await prepare(using);
      const agent = await createAgent({ name: "helper", model: echo(), store: redisStore(using) });
      const report = await agent.storage();
      using.destroy();
      await own.stop();
      return report;
    };
    const denying = (...commands) => (using) => using.sendCommand(["ACL", "SETUSER", "default", ...commands.map((each) => `-${each}`)]);
    const cases = {
      "an append-only file that is synced always": [{}, undefined, "durable", /^$/],
      "no append-only file": [{ appendonly: "no" }, undefined, "not-durable", /appendonly/],
      "an append-only file that is synced every second": [{ appendfsync: "everysec" }, undefined, "not-durable", /appendfsync is everysec/],
      "an append-only file that is not synced during rewrites": [{ "no-appendfsync-on-rewrite": "yes" }, undefined, "not-durable", /no-appendfsync-on-rewrite/],
      "CONFIG denied": [{}, denying("config"), "unknown", /not allowed/],
      "CONFIG and INFO denied": [{}, denying("config", "info"), "unknown", /not allowed/],
      "CONFIG denied, but INFO says that there is no file": [{ appendonly: "no" }, denying("config"), "not-durable", /appendonly/],
      "a policy that evicts": [{ maxmemory: "20mb", "maxmemory-policy": "allkeys-lru" }, undefined, "may-be-evicted", /noeviction/],
    };
    for (const [name, [settings, prepare, durability, warning]] of Object.entries(cases)) {
      test(`${name}: ${durability}`, async () => {
        const report = await reportOf(settings, prepare);
        assert.equal(report.durability, durability);
        assert.match(report.warnings.join(), warning);
        assert.equal(report.crossTab, true);
      });
    }

    test("a setting that changes while the agent runs is seen by the next report", async () => {
      const own = await startRedis();
      const using = await connect(own.port);
      const agent = await createAgent({ name: "helper", model: echo(), store: redisStore(using) });
      assert.equal((await agent.storage()).durability, "durable");
      await using.sendCommand(["CONFIG", "SET", "appendonly", "no"]);
      assert.equal((await agent.storage()).durability, "not-durable");
      using.destroy();
      await own.stop();
    });

    test("a server that does not answer is unknown, and the first call with a reader is warned", async () => {
      const silent = { sendCommand: () => Promise.reject(new Error("Connection is closed.")) };
      const agent = await createAgent({ name: "helper", model: echo(), store: redisStore(silent) });
      const { durability, warnings } = await agent.storage();
      assert.equal(durability, "unknown");
      assert.match(warnings.join(), /Connection is closed/);
    });
  });
});
