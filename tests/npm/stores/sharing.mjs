// Processes that share a session over a store, with any number of processes and kills.
// `npm test` runs a short version, `npm run test:long` a long one.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { capture } from "../../../src/build/run.mjs";
import { assertNotInterleaved, assertTold, openHere, slot, talk, toldIn } from "../support/processes.mjs";
import { packedModule } from "../support/project.mjs";
import { folder, startMariaDb, startRedis, withoutMariaDb, withoutRedis } from "../support/servers.mjs";
import { startWorker } from "../support/worker.mjs";

const upTo = (n) => Array.from({ length: n }, (_, index) => index);

/** All tests. `kills` is the number of kills in each, `calls` the number of calls of each process. */
export function sharingStories({ calls, writerKills, serverKills, workerKills }) {
  const files = async () => ({ kind: "files", place: folder("shared") });
  storeStories("files", false, files, { calls, writerKills });
  const redis = async () => {
    const server = await startRedis();
    return { kind: "redis", place: server.url, server };
  };
  storeStories("Redis", withoutRedis, redis, { calls, writerKills });
  const mariadb = async () => {
    const server = await startMariaDb();
    return { kind: "mysql", place: server.options, server };
  };
  storeStories("MariaDB", withoutMariaDb, mariadb, { calls, serverKills });
  objectStory(workerKills);
}

function storeStories(name, skip, start, { calls, writerKills = 0, serverKills = 0 }) {
  describe(name, { skip }, () => {
    let description, server;
    const begin = async () => {
      ({ server, ...description } = await start());
    };
    const end = () => server?.stop();

    // F-10, G-15
    describe("two processes", () => {
      before(begin);
      after(end);
      test(`two processes with ${calls} calls each on one session keep ${2 * calls} turns over ${name}, in order, none interleaved`, async () => {
        const both = await Promise.all(
          ["one", "two"].map((who) => talk(description, { who, calls, atOnce: true })),
        );
        for (const { ended } of both) {
          const { code, complaints } = await ended;
          assert.equal(code, 0, complaints);
        }
        const told = await toldIn(description);
        assert.equal(told.length, 4 * calls);
        assertNotInterleaved(told);
        for (const who of ["one", "two"]) assertTold(told, who, upTo(calls));
      });
    });

    // F-06, S-03, R-01
    if (writerKills > 0) {
      describe("a writer that is killed", () => {
        before(begin);
        after(end);
        test(`a writer killed ${writerKills} times over ${name} loses nothing that was acknowledged`, () =>
          killWriter(description, writerKills));
      });
    }

    //
    if (serverKills > 0) {
      describe("a server that is killed", () => {
        before(begin);
        after(end);
        test(`a server killed ${serverKills} times over ${name} loses nothing that was acknowledged`, () =>
          killServer(description, server, serverKills));
      });
    }
  });
}

async function killWriter(description, kills) {
  const acknowledged = [];
  for (let nth = 0; nth < kills; nth++) {
    const first = nth * 1_000;
    // At a random moment of the call after the last acknowledged one.
    const last = first + (nth % 4);
    const onAck = (n, child) => n === last && setTimeout(() => child.kill("SIGKILL"), Math.random() * 12);
    const writer = await talk(description, { who: "writer", first, calls: 1_000, onAck });
    const { signal, complaints } = await writer.ended;
    assert.equal(signal, "SIGKILL", complaints);
    assert.ok(writer.acknowledged.includes(last));
    acknowledged.push(...writer.acknowledged);
  }
  assertTold(await toldIn(description), "writer", acknowledged);
}

async function killServer(description, server, kills) {
  const { createAgent, customModel, textOf } = await packedModule("lockgate");
  const { store, close } = await openHere(description);
  const generate = async function* ({ messages }) {
    yield { type: "text", text: `to ${textOf(messages.at(-1))} after ${messages.length - 1}` };
  };
  const agent = await createAgent({ name: "helper", model: customModel({ id: "echo", generate }), store });
  const acknowledged = [];
  let n = 0;
  for (let nth = 0; nth < kills; nth++) {
    let isDown = false;
    const down = new Promise((resolve) =>
      setTimeout(() => server.kill().then(() => resolve((isDown = true))), 20 + Math.random() * 60),
    );
    while (!isDown) {
      const mine = n++;
      const done = await agent.call(`writer ${mine}`, slot).catch((error) => error);
      if (done.code === undefined) acknowledged.push(mine);
      else assert.match(done.code, /^STORE_/);
    }
    await down;
    await server.start();
  }
  const mine = n++;
  await agent.call(`writer ${mine}`, slot);
  await agent.close();
  await close();
  assertTold(await toldIn(description), "writer", [...acknowledged, mine]);
}

const worker = `
import { createAgent, customModel, textOf } from "lockgate";
import { durableObjectStore } from "lockgate/stores/cloudflare";
const model = customModel({
  id: "echo",
  async *generate({ messages }) {
    yield { type: "text", text: "to " + textOf(messages.at(-1)) };
  },
});
export class Session {
  constructor({ storage }) {
    this.agent = createAgent({ name: "helper", model, store: durableObjectStore(storage) });
  }
  async fetch(request) {
    const { say } = await request.json();
    const agent = await this.agent;
    if (say !== undefined) return Response.json((await agent.call(say, ${JSON.stringify(slot)})).text);
    const history = await agent.history(${JSON.stringify(slot)});
    return Response.json(history.map((message) => ({ role: message.role, text: textOf(message) })));
  }
}
export default {
  fetch: (request, env) => env.sessions.get(env.sessions.idFromName("one")).fetch(request),
};
`;

// W-01
function objectStory(kills) {
  test(`workerd killed ${kills} times loses nothing that a Durable Object acknowledged`, async () => {
    const settings = {
      durableObjects: { sessions: { className: "Session", useSQLite: true } },
      durableObjectsPersist: folder("objects"),
    };
    const acknowledged = [];
    let n = 0;
    for (let nth = 0; nth < kills; nth++) {
      const before = await children();
      const { miniflare } = await startWorker(worker, settings);
      const [pid] = (await children()).filter((each) => !before.includes(each));
      const last = n + 5 + nth;
      let isUp = true;
      while (isUp) {
        const mine = n++;
        const said = ask(miniflare, { say: `writer ${mine}` });
        if (mine === last) process.kill(pid, "SIGKILL");
        isUp = await said.then(
          (text) => text === `to writer ${mine}` && acknowledged.push(mine) > 0,
          () => false,
        );
      }
      await miniflare.dispose().catch(() => {});
    }
    const { miniflare } = await startWorker(worker, settings);
    await ask(miniflare, { say: "writer 10000" });
    assertTold(await ask(miniflare, {}), "writer", [...acknowledged, 10_000]);
    assert.ok(acknowledged.length >= 5 * kills);
    await miniflare.dispose();
  });
}

async function ask(miniflare, asked) {
  const response = await miniflare.dispatchFetch("http://worker/", { method: "POST", body: JSON.stringify(asked) });
  return response.json();
}

/** The running processes that this process has started. */
async function children() {
  const { stdout } = await capture("ps", ["-A", "-o", "pid=,ppid=,comm="]);
  const rows = stdout.trim().split("\n").map((line) => line.trim().split(/\s+/));
  const own = rows.filter(([, parent, name]) => Number(parent) === process.pid && name.includes("workerd"));
  return own.map(([pid]) => Number(pid));
}
