// Redis masters that are killed while calls run: a cluster and a group watched by Sentinel, with every client.
// `npm test` runs a short version, `npm run test:long` a long one.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Cluster, Redis } from "ioredis";
import { createCluster, createSentinel } from "redis";
import { packedModule } from "../support/project.mjs";
import { ask, startRedisCluster, startRedisSentinels, until, withoutRedis } from "../support/servers.mjs";

const { createAgent, customModel, textOf } = await packedModule("lockgate");
const { redisStore } = await packedModule("lockgate/stores/redis");

const USERS = 10;
/** As the docs recommend it for clients that fail over. */
const quiet = (client) => client.on("error", () => {});

const groups = {
  cluster: {
    start: startRedisCluster,
    victim: ({ masters: [first] }) => first,
    clients: {
      "createCluster of redis": ({ nodes }) => quiet(createCluster({ rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) })).connect(),
      "Cluster of ioredis": ({ nodes }) => quiet(new Cluster(nodes)),
    },
  },
  "Sentinel group": {
    start: startRedisSentinels,
    victim: ({ master }) => master,
    clients: {
      "createSentinel of redis": ({ name, sentinels }) => quiet(createSentinel({ name, sentinelRootNodes: sentinels })).connect(),
      "Redis of ioredis with sentinels": ({ name, sentinels }) => quiet(new Redis({ name, sentinels })),
    },
  },
};

/** All tests. `calls` is the number of calls in each. */
export function failoverStories({ calls }) {
  for (const [group, { start, victim, clients }] of Object.entries(groups)) {
    for (const [name, connect] of Object.entries(clients)) {
      describe(name, { skip: withoutRedis }, () => {
        let servers;
        const opened = [];
        const open = async () => {
          const client = await connect(servers);
          opened.push(client);
          return createAgent({ name: "helper", model: counting(), store: redisStore(client), replicas: true });
        };
        before(async () => {
          servers = await start();
        });
        after(async () => {
          for (const client of opened) await (client.destroy ?? client.disconnect).call(client);
          await servers?.stop();
        });

        test(`${name}: a master of a ${group} killed in the middle of ${calls} calls loses and doubles nothing that was acknowledged`, async () => {
          const agent = await open();
          const killed = victim(servers);
          const each = Array.from({ length: calls / USERS }, (_, n) => n);
          let acknowledged = 0;
          let isDown;
          const talk = async (userId) => {
            for (const n of each) {
              const { text } = await untilAcknowledged(agent, n, { userId, sessionId: "s" });
              assert.equal(text, `to ${n} after ${2 * n}`);
              acknowledged += 1;
              if (acknowledged < calls / 2 || isDown !== undefined) continue;
              isDown = ask(killed.port, "DBSIZE").then((n) => (assert.ok(n > 0, "the master that is killed has sessions"), killed.kill()));
            }
          };
          const users = Array.from({ length: USERS }, (_, n) => `user ${n}`);
          await Promise.all(users.map(talk));
          await isDown;
          const toldByAll = async () => {
            const reader = await open();
            const found = [];
            for (const userId of users) found.push((await reader.history({ userId, sessionId: "s" })).filter(isNoNote).map((message) => textOf(message)));
            return found;
          };
          const whole = users.map(() => each.flatMap((n) => [`${n}`, `to ${n} after ${2 * n}`]));
          assert.deepEqual(await toldByAll(), whole);
          assert.equal((await agent.listUsers()).length, USERS);
          // The old master comes back as a replica, and its older records with it.
          await killed.start();
          await until("the old master to follow the new one", async () => /master_link_status:up/.test(await ask(killed.port, "INFO", "replication")));
          assert.deepEqual(await toldByAll(), whole);
          const { durability } = await agent.storage();
          assert.equal(durability, "durable");
        });

        test(`${name}: every call of a second agent sees the records that the first one wrote`, async () => {
          const [one, other] = [await open(), await open()];
          const slot = { userId: "shared", sessionId: "s" };
          for (const n of [0, 1, 2, 3]) assert.equal((await (n % 2 === 0 ? one : other).call(`${n}`, slot)).text, `to ${n} after ${2 * n}`);
        });
      });
    }
  }
}

/** The engine notes in the log that a call was cut off. */
const isNoNote = ({ name }) => name !== "system";

/** A model that answers with the question and the number of messages before it. */
function counting() {
  return customModel({
    id: "counting",
    async *generate({ messages }) {
      const told = messages.filter(isNoNote);
      yield { type: "text", text: `to ${textOf(told.at(-1))} after ${told.length - 1}` };
    },
  });
}

/** Sends a question until it is acknowledged, as a user would: while the master is replaced, calls fail and may be repeated with their id. */
async function untilAcknowledged(agent, n, slot) {
  let reply;
  await until(`an answer to ${n}`, async () => {
    reply = await agent.call(`${n}`, { ...slot, callId: `call ${n}` }).then((given) => (given.reason === "interrupted" ? resumed(agent, slot) : given)).catch((error) => error);
    if (reply.code === undefined) return true;
    if (/^STORE_(UNAVAILABLE|TIMEOUT)$/.test(reply.code) && reply.retryable && reply.hint) return false;
    throw fatal(reply);
  });
  return reply;
}

/** The answer to a question whose call was cut off before its model was asked: the stored outcome of that call is "interrupted". */
async function resumed(agent, slot) {
  if ((await agent.session(slot)).interrupted) return agent.resume(slot).result;
  return { text: textOf((await agent.history(slot)).at(-1)) };
}

/** An error that ends `until`. */
const fatal = (cause) => Object.assign(new Error(`a failover gave ${cause.code}: ${cause.message}`, { cause }), { isFatal: true });
