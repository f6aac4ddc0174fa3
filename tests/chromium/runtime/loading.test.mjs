// Loading the wasm in a page with an obstacle: the file is lost, old, cut off, or forbidden.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";
import { answerWith, opened } from "../support/served.mjs";

const there = opened();

const isInline = (pathname) => pathname.endsWith("inline-wasm.js");

/**
 * A test with one server. `wasm(response, n)` answers the nth request for the first wasm file instead of the file. `policy` is the
 * page's Content-Security-Policy. `hides` are files that the server does not have. The page makes an agent and calls it.
 */
function story(name, { wasm, policy, hides = [], entry = "browser.js", script = "" }, check) {
  test(name, { timeout: 60_000 }, async () => {
    const asked = [];
    const server = http.createServer((request, response) => {
      const { pathname } = new URL(request.url, "http://any");
      asked.push(pathname);
      if (policy !== undefined) response.setHeader("content-security-policy", policy);
      if (pathname === "/") return response.setHeader("content-type", "text/html").end(PAGE);
      if (pathname === "/main.js") return response.setHeader("content-type", "text/javascript").end(main(entry, script));
      if (hides.some((hidden) => pathname.endsWith(hidden))) return response.writeHead(404).end();
      if (/\/(core|page)\.wasm$/.test(pathname) && wasm !== undefined) return wasm(response, asked.filter((each) => each === pathname).length);
      return answerWith(path.join(there.dist, pathname.slice("/dist/".length)), response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const context = await there.browser.newContext();
    try {
      const page = await context.newPage();
      const url = `http://127.0.0.1:${server.address().port}/`;
      await page.goto(url);
      await page.waitForFunction(() => document.title !== "");
      check(JSON.parse(await page.title()), { url, asked });
    } finally {
      await context.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

const PAGE = '<!doctype html><link rel="icon" href="data:,"><title></title><script type="module" src="/main.js"></script>';

// The result is in the title, because a policy may forbid everything that a test would run in the page.
const main = (entry, script) => `
import * as lockgate from "/dist/entry/${entry}";
const { createAgent, demoModel, memoryStore } = lockgate;
const tell = (answer) => (document.title = JSON.stringify(answer));
try {
  ${script}
  const agent = await createAgent({ name: "helper", model: demoModel(), store: memoryStore() });
  tell({ text: (await agent.call("Hello", { sessionId: "s" })).text });
} catch ({ code, message, hint, retryable }) {
  tell({ code, message, hint, retryable });
}
`;

const works = ({ text, ...rest }) => assert.match(String(text), /Hello/, JSON.stringify(rest));

function refused(answer, wanted, ...patterns) {
  assert.equal(answer.code, "ENGINE_LOAD", JSON.stringify(answer));
  assert.ok(answer.message.includes(wanted), `${answer.message} does not name ${wanted}`);
  for (const pattern of patterns) assert.match(`${answer.message}\n${answer.hint}`, pattern);
}

const file = (name) => fs.readFileSync(path.join(there.dist, name));

story("V-12: if the wasm file is served, nothing else is requested", {}, (answer, { asked }) => {
  works(answer);
  assert.deepEqual(asked.filter(isInline), []);
  const wasm = asked.filter((each) => each.endsWith(".wasm"));
  // The rest loads in the background, perhaps after the answer.
  assert.deepEqual([...new Set(wasm)], ["/dist/page.wasm", "/dist/rest.wasm"].slice(0, wasm.length));
});

const lost = (response) => response.writeHead(404).end();
const aPage = (response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>a dev server</title>");
const half = (response) => response.setHeader("content-type", "application/wasm").end(file("page.wasm").subarray(0, 100_000));

for (const [how, wasm] of [["is lost", lost], ["is a page of a dev server", aPage], ["is cut off", half]]) {
  story(`V-12: where the wasm file ${how}, the copy inside the package takes its place`, { wasm }, (answer, { asked }) => {
    works(answer);
    assert.equal(asked.filter(isInline).length, 1);
  });
}

story("V-12: a wasm with the wrong MIME type is accepted", { wasm: (response) => response.setHeader("content-type", "text/plain").end(file("page.wasm")) }, works);

story("V-12: if file and copy are lost, the error names the address and a solution", { wasm: lost, hides: ["inline-wasm.js"] }, (answer, { url }) => {
  refused(answer, `${url}dist/page.wasm`, /HTTP 404/, /serve the wasm files/, /lockgate\/inline/);
  assert.equal(answer.retryable, true);
});

story("V-12: if the server answers with a page instead of the file, the error says so", { wasm: aPage, hides: ["inline-wasm.js"] }, (answer, { url }) => {
  refused(answer, `${url}dist/page.wasm`, /not wasm/, /dev server/);
});

story("V-12: under a policy that forbids wasm the error names 'wasm-unsafe-eval'", { policy: "script-src 'self'" }, (answer, { url }) => {
  refused(answer, `${url}dist/page.wasm`, /forbidden here/, /'wasm-unsafe-eval'/);
});

story("V-12: under a policy with 'wasm-unsafe-eval' it works", { policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'" }, works);

story("V-12: if the policy forbids all requests, the copy inside the package is used", { policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'" }, works);

/** The file of another version: the same bytes with another seal at the end. */
const stale = (name = "page.wasm") => {
  const bytes = Buffer.from(file(name));
  // Another hexadecimal digit, so that the changed seal still has the form of a seal.
  bytes[bytes.length - 1] = bytes.at(-1) === 0x30 ? 0x31 : 0x30;
  return bytes;
};

story("V-13: an old wasm from a cache is requested a second time", {
  wasm: (response, n) => response.setHeader("content-type", "application/wasm").setHeader("cache-control", "max-age=3600").end(n === 1 ? stale() : file("page.wasm")),
}, (answer, { asked }) => {
  works(answer);
  assert.equal(asked.filter((each) => each.endsWith("page.wasm")).length, 2);
  assert.deepEqual(asked.filter(isInline), []);
});

story("V-13: a wasm that is still old at the second request is refused with both builds and its address", {
  wasm: (response) => response.setHeader("content-type", "application/wasm").end(stale()),
  hides: ["inline-wasm.js"],
}, (answer, { url }) => refused(answer, `${url}dist/page.wasm`, /of build [\d.]+-\w{16}, and this JavaScript of build [\d.]+-\w{16}/, /caches/));

const sources = {
  "an address": 'await lockgate.init("/dist/core.wasm");',
  "a Response": 'await lockgate.init(fetch("/dist/core.wasm"));',
  "bytes": 'await lockgate.init(await (await fetch("/dist/core.wasm")).arrayBuffer());',
  "a module": 'await lockgate.init(await WebAssembly.compileStreaming(fetch("/dist/core.wasm")));',
};
for (const [what, script] of Object.entries(sources)) {
  story(`lockgate/slim takes ${what}, and fetches nothing by itself`, { entry: "slim.js", script }, (answer, { asked }) => {
    works(answer);
    assert.equal(asked.filter((each) => each.endsWith(".wasm") || isInline(each)).length, 1);
  });
}

story("lockgate/slim without a wasm names the function to call", { entry: "slim.js" }, (answer) => refused(answer, "lockgate/slim has no wasm yet", /init/));

story("lockgate/slim refuses an old wasm and then accepts the right one", {
  entry: "slim.js",
  wasm: (response, n) => response.end(n === 1 ? stale("core.wasm") : file("core.wasm")),
  script: 'const early = await lockgate.init("/dist/core.wasm").catch((error) => error); if (early?.code !== "ENGINE_LOAD") throw new Error("taken"); await lockgate.init("/dist/core.wasm");',
}, works);

story("lockgate/inline fetches no wasm", { entry: "inline.js", policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'" }, (answer, { asked }) => {
  works(answer);
  assert.deepEqual(asked.filter((each) => each.endsWith(".wasm")), []);
});

story("two entries in one realm load the wasm once", {
  script: 'const other = await import("/dist/entry/inline.js"); const again = await other.createAgent({ name: "other", model: demoModel(), store: memoryStore() }); await again.call("Hello", { sessionId: "s" }); const copy = await import("/dist/runtime/wasm.js?copy"); await copy.loadEngine(() => { throw new Error("it was loaded again"); });',
}, works);
