// A client attacks a worker in workerd, while another user talks. `npm test` runs a short version, `npm run test:long` ten minutes.
import assert from "node:assert/strict";
import http from "node:http";
import { createRequire } from "node:module";
import { test } from "node:test";
import { asker, startHosted, startPlace, workerSource } from "../support/hosted.mjs";
import { folder } from "../support/servers.mjs";

// Node 20 has no WebSocket of its own; miniflare brings one.
const require = createRequire(createRequire(import.meta.url).resolve("miniflare"));
const { WebSocket } = require("ws");

const LARGE = JSON.stringify({ input: "x".repeat(3_900_000) });
const HEAP_BYTES = 64 * 1024 * 1024;

/** Attacks for this long. The other user's calls must be answered within `answerMs`. */
export function attackStory(ms, answerMs) {
  test(`for ${ms / 1_000} s, streams that nobody reads, large posts, slow bodies, deletes and forged ids neither fill the heap nor keep another user waiting`, async (t) => {
    const place = await startPlace();
    place.answer = (text, response) => {
    // The test must not keep what it has posted.
    place.asked.length = 0;
    response.end(text.length > 100 ? "read" : `you said ${text}`);
  };
    const settings = { inspectorPort: 0, durableObjectsPersist: folder("attacks"), handleRuntimeStdio: (...logs) => logs.forEach((log) => log.resume()) };
    const hosted = await startHosted(place, { source: workerSource("", "maxBodyBytes: 4_194_304, bodyTimeoutMs: 2_000,"), settings });
    const heap = await heapOf(hosted.miniflare);
    const crowd = new Crowd(hosted.url);
    t.after(async () => {
      crowd.end();
      heap.close();
      await hosted.stop();
      place.close();
    });
    const mallory = asker(() => hosted, "mallory");
    const seen = { heap: 0, waited: 0, posts: 0, forged: 0, calls: 0, slow: 0, cut: 0 };
    const until = performance.now() + ms;
    const during = async (work) => {
      for (let n = 0; performance.now() < until; n += 1) await work(n);
    };
    const post = async (n) => {
      const id = `s${n}`;
      const callId = `call-${n}`;
      const response = await mallory(`sessions/${id}/messages`, LARGE.replace("{", `{ "callId": "${callId}", `));
      assert.ok([200, 429].includes(response.status), `a large post was answered with ${response.status}`);
      // The answers of some posts are never read.
      if (n % 3 === 0) await response.body.cancel();
      else await response.text();
      seen.posts += 1;
      for (const path of ["events", `sessions/${id}/stream?callId=${callId}`, `sessions/${id}/history`, "chat/" + id]) crowd.open(path);
      if (n % 2 === 0) await mallory(n % 16 === 0 ? "user" : `sessions/${id}`, undefined, { method: "DELETE" });
      if (n % 2 === 0) assert.ok(!(await (await mallory(`sessions/${id}/stream?callId=${callId}`)).text()).includes("xxx"), "a deleted text was shown");
    };
    const forge = async (n) => {
      const id = encodeURIComponent(String.fromCharCode(97 + (n % 26)).repeat(200) + n);
      const caller = { "x-lockgate-caller": encodeURIComponent(JSON.stringify({ caller: { userId: "bob" }, session: null, basePath: "" })) };
      const [path, body, init] = [
        [`sessions/${id}/stream?callId=${id}`],
        [`sessions/${id}/history`, undefined, { headers: caller }],
        ["sessions/bob/history", undefined, { headers: { ...caller, "x-lockgate-session": "bob" } }],
        [`sessions/${"y".repeat(5_000)}${n}/asks`],
        ["chat", '{ "id": "\\ud800", "messages": [] }'],
        ["chat", { id: { toString: 1 }, messages: [] }],
        [`sessions/${id}/interrupt`, { callId: { toString: 1 } }],
        [`sessions/${id}/messages`, '{ "input": "hello", "callId": "\\ud800" }'],
        [`sessions/${id}/fork`, { to: { toString: 1 } }],
      ][n % 9];
      const response = await mallory(path, body, init);
      assert.ok(response.status < 500, `${path.slice(0, 40)} was answered with ${response.status}`);
      assert.ok(!(await response.text()).includes("a secret of bob"));
      seen.forged += 1;
    };
    // One connection that stays open, so that the time of the worker is measured and not that of new connections.
    const line = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => line.destroy());
    const bob = (path, body, { method = "POST", headers = {} } = {}) =>
      new Promise((resolve, reject) => {
        const request = http.request(`${hosted.url}/${path}`, { method, agent: line, headers: { "x-user": "bob", "content-type": "application/json", ...headers } });
        request.on("error", reject).on("response", async (response) => {
          let text = "";
          for await (const chunk of response.setEncoding("utf8")) text += chunk;
          resolve({ status: response.statusCode, text });
        });
        request.end(body === undefined ? undefined : JSON.stringify(body));
      });
    const talk = async () => {
      const began = performance.now();
      const { status, text } = await bob("sessions/bob/messages", { input: "a secret of bob" }, { headers: { accept: "application/json" } });
      const waited = performance.now() - began;
      assert.equal(status, 200, text);
      seen.waited = Math.max(seen.waited, waited);
      seen.calls += 1;
      assert.ok(waited < answerMs, `another user waited for ${Math.round(waited)} ms`);
      if (seen.calls % 50 === 0) await bob("sessions/bob", undefined, { method: "DELETE" });
    };
    const measure = async () => {
      const bytes = await heap.collected();
      seen.heap = Math.max(seen.heap, bytes);
      assert.ok(bytes < HEAP_BYTES, `the heap has ${bytes} bytes after a collection`);
      // Collecting takes time that other requests wait for.
      for (let n = 0; n < 20 && performance.now() < until; n += 1) await talk();
    };
    await talk();
    crowd.slow("sessions/slow/messages", 10);
    await Promise.all([during(post), during(forge), during(measure)]);
    Object.assign(seen, { slow: crowd.late, cut: crowd.ended });
    t.diagnostic(JSON.stringify({ ...seen, waited: Math.round(seen.waited), heapMB: Math.round(seen.heap / 1e6) }));
    assert.ok(seen.posts > 3 && seen.forged > 9 && seen.calls > 9 && crowd.late > 0, `the attack was weak: ${JSON.stringify(seen)}`);
  });
}

/** Connections that are opened and then neglected. */
class Crowd {
  #url;
  #open = new Set();
  #isOver = false;
  /** How many slow bodies were refused. */
  late = 0;
  /** How many streams the worker has ended. */
  ended = 0;

  constructor(url) {
    this.#url = url;
  }

  /** Opens a stream and never reads it. The oldest of 120 is closed. */
  open(path) {
    const request = this.#request("GET", path, {});
    // A response without a reader fills the buffers and then stays where it is.
    request.on("response", (response) => response.pause().on("close", () => (this.ended += 1)));
    request.end();
    const [oldest] = this.#open;
    if (this.#open.size > 120) oldest.destroy();
  }

  /** Keeps this many posts open whose bodies arrive byte by byte. */
  slow(path, n) {
    for (let i = 0; i < n; i += 1) this.#drip(path);
  }

  #drip(path) {
    if (this.#isOver) return;
    const request = this.#request("POST", path, { "content-length": 3_900_000 });
    request.write('{ "input": "');
    const timer = setInterval(() => request.write("z"), 100);
    let isRefused = false;
    request.on("response", (response) => {
      response.resume();
      isRefused = response.statusCode === 408 || response.statusCode === 429;
      if (response.statusCode === 408) this.late += 1;
      request.destroy();
    });
    request.on("close", () => {
      clearInterval(timer);
      this.#drip(path);
    });
  }

  #request(method, path, headers) {
    const request = http.request(`${this.#url}/${path}`, { method, agent: false, headers: { "x-user": "mallory", "content-type": "application/json", ...headers } });
    this.#open.add(request);
    request.on("error", () => {});
    request.on("close", () => this.#open.delete(request));
    return request;
  }

  end() {
    this.#isOver = true;
    for (const request of this.#open) request.destroy();
  }
}

/** The heap of the worker, by its inspector. */
async function heapOf(miniflare) {
  const base = await miniflare.getInspectorURL();
  const list = await (await fetch(new URL("/json", base.href.replace(/^ws/, "http")))).json();
  const { webSocketDebuggerUrl } = list.find(({ id, title }) => /core:user|worker/.test(`${id} ${title}`)) ?? list[0];
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the inspector cannot be reached")));
  });
  const waiting = new Map();
  let last = 0;
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    waiting.get(id)?.(error === undefined ? result : Promise.reject(new Error(error.message)));
    waiting.delete(id);
  });
  const ask = (method) =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      socket.send(JSON.stringify({ id: last, method }));
    });
  return {
    async collected() {
      await ask("HeapProfiler.collectGarbage");
      return (await ask("Runtime.getHeapUsage")).usedSize;
    },
    close: () => socket.close(),
  };
}
