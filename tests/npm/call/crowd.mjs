// Many sessions at once over HTTP, with broken connections and a worker that is killed in the middle. `npm test` runs a short version, `npm run test:long` a long one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startHosted, startPlace } from "../support/hosted.mjs";
import { packedModule } from "../support/project.mjs";
import { folder } from "../support/servers.mjs";

const upTo = (n) => Array.from({ length: n }, (_, index) => index);

/** The test. The sessions are distributed over `users`. */
export function crowdStory({ users, sessions, calls }) {
  test(`W-01, W-02: ${sessions} sessions with ${calls} calls each, disconnects at random and workerd killed in the middle: nothing acknowledged is lost, no tool runs twice`, async (t) => {
    const { remoteAgent } = await packedModule("lockgate/remote");
    const place = await startPlace();
    // workerd logs every lost connection.
    const handleRuntimeStdio = (...logs) => logs.forEach((log) => log.resume());
    const settings = { durableObjectsPersist: folder("crowd"), handleRuntimeStdio };
    const worker = new Worker(place, settings);
    await worker.start();
    t.after(async () => {
      await worker.stop();
      place.close();
    });
    const told = { breaks: 0, acknowledged: 0, interrupted: 0 };
    const agents = upTo(users).map((n) =>
      remoteAgent({ url: "http://worker/agent", headers: { "x-user": `user-${n}` }, fetch: (url, init) => worker.fetch(url, init, told) }),
    );
    const all = upTo(sessions).map((n) => ({ agent: agents[n % users], slot: { sessionId: `s${n}` }, words: upTo(calls).map((nth) => `w${n}-${nth}`), kept: [] }));
    const total = sessions * calls;
    // Tools that ran but cannot report it: their calls are cut off, and must not run again.
    const killSoon = () => {
      place.onTool = () => false;
      setImmediate(async () => {
        await worker.restart();
        place.onTool = undefined;
      });
      return false;
    };
    const talk = async ({ agent, slot, words, kept }) => {
      for (const word of words) {
        const outcome = await agent.call(`use count ${word}`, slot).then(({ reason }) => reason, (error) => error.code);
        if (outcome === "stop") kept.push(word);
        told[outcome === "stop" ? "acknowledged" : "interrupted"] += 1;
        assert.ok(["stop", "interrupted", "SUPERSEDED"].includes(outcome), `${word} ended with ${outcome}`);
        if (told.acknowledged + told.interrupted === Math.floor(total / 2)) place.onTool = killSoon;
      }
    };
    await Promise.all(all.map(talk));
    assert.equal(told.acknowledged + told.interrupted, total);
    assert.equal(worker.kills, 1);
    assert.ok(told.breaks > sessions, `${told.breaks} connections broke`);
    assert.ok(told.interrupted > 0, "the kill interrupted no call");
    for (const session of all) await check(session, place);
    const runs = place.ran.map(({ word }) => word);
    assert.equal(new Set(runs).size, runs.length, "a tool ran twice");
    t.diagnostic(JSON.stringify(told));
  });
}

/** Acknowledged turns are stored completely, once and in order. */
async function check({ agent, slot, words, kept }, place) {
  const history = await agent.history(slot);
  const texts = history.map(({ role, content }) => `${role}: ${content.map((block) => block.text ?? block.output?.[0]?.text ?? block.name).join("")}`);
  const asked = texts.filter((text) => text.startsWith("user: use count")).map((text) => text.slice(16));
  assert.equal(new Set(asked).size, asked.length, "a question is stored twice");
  assert.deepEqual(asked, words.filter((word) => asked.includes(word)), "questions are out of order");
  for (const word of kept) {
    const at = texts.indexOf(`user: use count ${word}`);
    assert.deepEqual(texts.slice(at + 1, at + 4), ["assistant: count", `tool: ran ${word}`, `assistant: the tool said: ran ${word}`], `${slot.sessionId} ${word}`);
    assert.ok(place.ran.some((run) => run.word === word));
  }
}

/** A worker that can be killed, and restarts with its stored data. */
class Worker {
  kills = 0;
  #place;
  #settings;
  #up;
  #n = 0;

  constructor(place, settings) {
    this.#place = place;
    this.#settings = settings;
  }

  start() {
    this.#up = startHosted(this.#place, { settings: this.#settings });
    return this.#up;
  }

  /** Resolves when the worker is dead. Requests in the meantime wait until it is back. */
  async restart() {
    const hosted = await this.#up;
    this.kills += 1;
    const dead = hosted.kill();
    this.#up = dead.then(() => startHosted(this.#place, { settings: this.#settings }));
    await dead;
  }

  async stop() {
    await (await this.#up).stop();
  }

  /** Every other connection breaks somewhere in its first kilobytes. */
  async fetch(url, init, told) {
    const hosted = await this.#up;
    const response = await fetch(url.replace("http://worker/agent", hosted.url), init);
    const left = 100 + Math.random() * 4_000;
    if (this.#n++ % 2 === 0 || !(response.headers.get("content-type") ?? "").includes("event-stream")) return response;
    return cut(response, left, () => (told.breaks += 1));
  }
}

function cut(response, nBytes, broke) {
  const reader = response.body.getReader();
  let left = nBytes;
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      controller.enqueue(value.slice(0, Math.max(0, left)));
      left -= value.length;
      if (left > 0) return;
      broke();
      await reader.cancel().catch(() => {});
      controller.error(new TypeError("the connection is gone"));
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
