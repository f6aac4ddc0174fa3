// Redis masters that are killed while calls run: the short version, and what the store does while replicas lag or a server is replaced.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { createClient, createSentinel } from "redis";
import { packedModule } from "../support/project.mjs";
import { ask, startRedis, startRedisSentinels, until, withoutRedis } from "../support/servers.mjs";
import { failoverStories } from "./redis-failover.mjs";

const { createAgent, demoModel, textOf } = await packedModule("lockgate");
const { redisStore } = await packedModule("lockgate/stores/redis");

failoverStories({ calls: 100 });

const put = (revision, expected, key = "a/u/x") => ({
  revision,
  expect: { key, revision: expected },
  put: [{ key, value: new TextEncoder().encode(revision) }],
  remove: [],
});
const refused = (promise) =>
  promise.then(
    () => assert.fail("it was expected to fail"),
    (error) => error,
  );
const slot = { userId: "alice", sessionId: "s" };

describe("replicas that lag", { skip: withoutRedis }, () => {
  let group, client;
  before(async () => {
    // Here nothing is to take over.
    group = await startRedisSentinels({}, { downAfterMs: 120_000 });
    client = await createSentinel({ name: group.name, sentinelRootNodes: group.sentinels }).on("error", () => {}).connect();
  });
  after(async () => {
    await client?.destroy();
    await group?.stop();
  });

  test("a commit that a connected replica does not have is not acknowledged, and cannot be read before the replica has it", async () => {
    const store = redisStore(client, { prefix: "lag:" });
    await store.commit(put("r1", null));
    const [first] = group.replicas;
    first.pause();
    const error = await refused(store.commit(put("r2", "r1")));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.match(error.message, /1 of 2 replicas/);
    assert.ok(error.retryable && error.hint);
    // The engine reads the head to find out whether the commit was applied.
    assert.equal((await refused(store.get(["a/u/x"]))).code, "STORE_UNAVAILABLE");
    first.resume();
    await until("the replica to be back", async () => (await store.get(["a/u/x"]))[0].revision === "r2");
    assert.equal(await store.commit(put("r3", "r2")), "ok");
  });

  test("a call whose answer a replica does not have fails, and is answered once when it is repeated", async () => {
    const agent = await createAgent({ name: "helper", model: demoModel({ delayMs: 0 }), store: redisStore(client, { prefix: "call:" }) });
    await agent.call("one", { ...slot, callId: "1" });
    group.replicas[1].pause();
    const error = await refused(agent.call("two", { ...slot, callId: "2" }));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    group.replicas[1].resume();
    await until("the call to be acknowledged", () => agent.call("two", { ...slot, callId: "2" }).then(() => true));
    const asked = (await agent.history(slot)).filter(({ role, metadata }) => role === "user" && metadata?.note === undefined).map((message) => textOf(message));
    assert.deepEqual(asked, ["one", "two"]);
  });

  test("a replica answers no read: its records may be old", async () => {
    for (const connect of [
      ({ port }) => createClient({ url: `redis://127.0.0.1:${port}` }).on("error", () => {}).connect(),
      ({ port }) => new Redis(port),
    ]) {
      const using = await connect(group.replicas[0]);
      const store = redisStore(using, { prefix: "lag:" });
      for (const read of [store.get(["a/u/x"]), store.list("a/u/"), store.list("a/")]) {
        const error = await refused(read);
        assert.equal(error.code, "STORE_UNAVAILABLE");
        assert.match(error.message, /READONLY/);
      }
      (using.destroy ?? using.disconnect).call(using);
    }
  });

  test("minReplicas makes a client of one server wait for replicas, and refuses commits when there are too few", async () => {
    const using = await createClient({ url: `redis://127.0.0.1:${group.master.port}` }).on("error", () => {}).connect();
    assert.equal(await redisStore(using, { prefix: "min:", minReplicas: 2 }).commit(put("r1", null)), "ok");
    const error = await refused(redisStore(using, { prefix: "min:", minReplicas: 3 }).commit(put("r2", "r1")));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.match(error.message, /2 of 3 replicas/);
    using.destroy();
  });
});

describe("a server that requires replicas", { skip: withoutRedis }, () => {
  test("min-replicas-to-write without replicas is STORE_UNAVAILABLE with a hint, and sessions can still be read", async () => {
    const own = await startRedis();
    const using = await createClient({ url: `redis://127.0.0.1:${own.port}` }).on("error", () => {}).connect();
    const store = redisStore(using);
    await store.commit(put("r1", null));
    await ask(own.port, "CONFIG", "SET", "min-replicas-to-write", "1");
    const error = await refused(store.commit(put("r2", "r1")));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.match(error.hint, /min-replicas-to-write/);
    assert.equal((await store.get(["a/u/x"]))[0].revision, "r1");
    using.destroy();
    await own.stop();
  });
});
