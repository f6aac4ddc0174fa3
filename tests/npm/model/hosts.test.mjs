// The same conversation over three dialects in Node, in Chromium and in workerd; the key is found nowhere afterwards.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import esbuild from "esbuild";
import { Miniflare } from "miniflare";
import { chromium } from "playwright-core";
import { inRoot } from "../../../src/build/run.mjs";
import { project, tell } from "../support/project.mjs";
import { openProvider, speak } from "../support/provider.mjs";
import { bare, echo, formsOf } from "../support/scenario.mjs";

const DIALECTS = ["openai", "anthropic", "gemini"];
const KEY = "canary/KEY+9=3&x?y-Zq7";
const found = [];
const providers = [];

before(async () => {
  const folder = await project();
  fs.copyFileSync(inRoot("tests/npm/support/scenario.mjs"), path.join(folder, "scenario.mjs"));
});
after(() => Promise.all(providers.map((provider) => provider.close())));

async function provider() {
  const opened = await openProvider(echo(speak));
  providers.push(opened);
  return opened;
}

/** Keeps the states for comparison, and searches the shown text for the key. */
function judge(host, results, more = "") {
  for (const [dialect, { state, shown }] of Object.entries(results)) {
    assert.match(shown, /\[redacted\]/, `${host} ${dialect}: the provider's echo did not arrive`);
    for (const form of formsOf(KEY)) assert.ok(!(shown + more).includes(form), `${host} ${dialect}: ${form} in ${around(shown + more, form)}`);
    found.push({ name: `${host} ${dialect}`, state: bare(state) });
  }
}

const around = (text, form) => text.slice(Math.max(0, text.indexOf(form) - 200), text.indexOf(form) + 100);

// X-06, M-18
test("in Node a conversation over three dialects shows the key nowhere: events, errors, stores and wasm memory", async () => {
  const { url } = await provider();
  const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));
  const modules = { lockgate: `file://${dist}/entry/node.js`, testing: `file://${dist}/testing/testing.js` };
  const given = { url, key: KEY, dialects: DIALECTS, forms: formsOf(KEY), wasm: `file://${dist}/runtime/wasm.js` };
  const results = await tell(
    async ({ mapStore, assert, ...lockgate }, { url, key, dialects, forms, wasm }) => {
      const { converse } = await import("./scenario.mjs");
      const results = {};
      for (const dialect of dialects) {
        const store = mapStore();
        const result = await converse(lockgate, { dialect, url, key, store });
        const records = await store.list("");
        result.shown += records.map((record) => record.key + new TextDecoder().decode(record.value)).join("\n");
        results[dialect] = result;
      }
      const { loadEngine } = await import(wasm);
      const engine = await loadEngine(() => assert.fail("no engine was loaded"));
      const memory = Buffer.from(engine.instance().core.initSync({}).memory.buffer);
      assert.ok(memory.includes("Two cities."), "the searched memory is not that of the engine");
      for (const form of forms) assert.ok(!memory.includes(form), `${form} is in wasm memory`);
      return results;
    },
    given,
    modules,
  );
  judge("node", results);
});

// X-06, M-16
test("in Chromium the same conversation shows the key nowhere: page, console and IndexedDB", async () => {
  const { url } = await provider();
  const folder = path.join(await project());
  const page = await openPage(folder);
  const results = await page.run(async (dialects, url, key) => {
    const lockgate = await import("/dist/entry/browser.js");
    const { converse } = await import("/scenario.mjs");
    const results = {};
    for (const dialect of dialects) results[dialect] = await converse(lockgate, { dialect, url, key });
    document.body.append(JSON.stringify(results));
    return results;
  }, [DIALECTS, url, KEY]);
  const stored = await page.run(async () => {
    const dump = [];
    for (const { name } of await indexedDB.databases()) {
      const open = (request) => new Promise((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = reject)));
      const database = await open(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        const rows = database.transaction(store).objectStore(store);
        const [keys, values] = [await open(rows.getAllKeys()), await open(rows.getAll())];
        dump.push(JSON.stringify(keys), ...values.map((value) => new TextDecoder().decode(value.value ?? value) + JSON.stringify(value)));
      }
      database.close();
    }
    return dump.join("\n");
  }, []);
  assert.match(stored, /Rain and sun/);
  const seen = [stored, page.console.join("\n"), await page.html()].join("\n");
  judge("chromium", results, seen);

  // A provider that does not allow the page, and a page without a network, are told apart by their hints.
  const closed = http.createServer((request, response) => response.end("{}"));
  await new Promise((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const ask = async (baseUrl) => {
    const { createAgent, openai } = await import("/dist/entry/browser.js");
    const agent = await createAgent({ name: "lonely", model: openai({ model: "m", baseUrl }), retries: { attempts: 1 } });
    return agent.call("hello", { sessionId: "s" }).then(String, ({ code, hint }) => ({ code, hint }));
  };
  const refused = await page.run(ask, [`http://127.0.0.1:${closed.address().port}`]);
  assert.equal(refused.code, "MODEL_NETWORK");
  assert.match(refused.hint, /CORS/);
  await page.offline();
  const offline = await page.run(ask, [url]);
  assert.deepEqual(offline, { code: "MODEL_NETWORK", hint: "this device is offline" });
  await page.close();
  closed.close();
});

//
test("in workerd the same conversation shows the key nowhere", async () => {
  const { url } = await provider();
  const folder = await project();
  const worker = `
    import * as lockgate from "lockgate";
    import { converse } from "./scenario.mjs";
    export default {
      async fetch(request) {
        const { dialects, url, key } = await request.json();
        const results = {};
        for (const dialect of dialects) results[dialect] = await converse(lockgate, { dialect, url, key });
        return Response.json(results);
      },
    };`;
  fs.writeFileSync(path.join(folder, "hosts-worker.mjs"), worker);
  const outdir = path.join(folder, "hosts-bundled");
  await esbuild.build({
    absWorkingDir: folder, entryPoints: ["hosts-worker.mjs"], outdir, bundle: true, format: "esm", target: "es2022",
    conditions: ["workerd", "worker"], loader: { ".wasm": "copy" }, logLevel: "silent",
  });
  const modules = fs.readdirSync(outdir).sort((one) => (one.endsWith(".js") ? -1 : 1));
  const miniflare = new Miniflare({
    modulesRoot: outdir,
    modules: modules.map((name) => ({ type: name.endsWith(".wasm") ? "CompiledWasm" : "ESModule", path: path.join(outdir, name) })),
    compatibilityDate: "2025-01-01",
  });
  try {
    const body = JSON.stringify({ dialects: DIALECTS, url, key: KEY });
    const response = await miniflare.dispatchFetch("http://worker/", { method: "POST", body });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    judge("workerd", JSON.parse(text));
  } finally {
    await miniflare.dispose();
  }
});

// R69
test("the conversation ends in the same AgentState on every host and over every dialect", () => {
  assert.equal(found.length, 9, "a host has no result");
  const [first, ...others] = found;
  // The question that the provider rejects with a 400 is in the history only.
  assert.deepEqual(first.state.context.map(({ role }) => role), [
    "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "user", "user", "assistant",
  ]);
  for (const { name, state } of others) {
    assert.deepEqual({ ...state, context: withoutEcho(state) }, { ...first.state, context: withoutEcho(first.state) }, name);
  }
});

// The rest of the echo depends on the header that has the key; the checks above prove that the key is not in it.
const withoutEcho = ({ context }) => context.filter((message) => !JSON.stringify(message).includes("[redacted]"));

/** A page on its own origin, with the packed package on the same server. */
async function openPage(folder) {
  const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><body></body>");
    const file = path.join(pathname.startsWith("/dist/") ? path.join(folder, "node_modules/lockgate") : folder, pathname);
    if (!fs.existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[path.extname(file)] ?? "text/plain" }).end(fs.readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });
  const context = await browser.newContext();
  const page = await context.newPage();
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  return {
    console: said,
    run: (work, given) => page.evaluate(`(${work})(...${JSON.stringify(given)})`),
    html: () => page.content(),
    offline: () => context.setOffline(true),
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
