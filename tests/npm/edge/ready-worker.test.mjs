// The workers that users copy: the example in www/docs/edge.md, and www/worker.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import esbuild from "esbuild";
import { inRoot } from "../../../src/build/run.mjs";
import { serveEdge } from "../../../src/build/edge.mjs";
import { packedModule } from "../support/project.mjs";
import { folder } from "../support/servers.mjs";
import { startWorker } from "../support/worker.mjs";

test("the worker in the documentation has about ten lines and answers", async (t) => {
  const [, example] = /^```ts\n(.*?)^```/ms.exec(fs.readFileSync(inRoot("www/docs/edge.md"), "utf8"));
  assert.ok(example.trim().split("\n").length <= 14);
  const { code } = await esbuild.transform(example, { loader: "ts" });
  const { miniflare } = await startWorker(code, { durableObjects: { HELPER: { className: "Helper", useSQLite: true } } });
  t.after(() => miniflare.dispose());
  const { remoteAgent } = await packedModule("lockgate/remote");
  const as = (user) => remoteAgent({ url: "http://worker/agent", headers: { "x-user": user }, fetch: (url, init) => miniflare.dispatchFetch(url, init) });
  assert.match((await as("alice").call("Hello!", { sessionId: "s" })).text, /demo model/);
  assert.equal((await as("alice").history({ sessionId: "s" })).length, 2);
  assert.deepEqual(await as("bob").listSessions(null), []);
});

test("the ready worker serves the page and gives it the address of the agent; every visitor has their own sessions", async (t) => {
  const www = folder("page");
  fs.writeFileSync(`${www}/index.html`, "<!doctype html><html><head><title>page</title></head><body></body></html>");
  const edge = await serveEdge({ www, state: folder("ready") });
  t.after(edge.close);
  const visit = async () => {
    const response = await fetch(edge.url);
    assert.match(await response.text(), /<meta name="lockgate-remote" content="\/agent">/);
    assert.match(response.headers.get("content-security-policy"), /connect-src 'self'/);
    const cookie = response.headers.get("set-cookie");
    assert.match(cookie, /HttpOnly; SameSite=Strict/);
    return { cookie: cookie.split(";")[0] };
  };
  const [one, other] = [await visit(), await visit()];
  const { remoteAgent } = await packedModule("lockgate/remote");
  const as = (headers) => remoteAgent({ url: new URL("/agent", edge.url).href, headers });
  assert.match((await as(one).call("What time is it?", { sessionId: "s" })).text, /clock/);
  const { reason } = await as(one).call("use publish the news", { sessionId: "s" });
  assert.equal(reason, "asking");
  assert.equal((await as(one).listSessions(null)).length, 1);
  assert.deepEqual(await as(other).listSessions(null), []);
  await assert.rejects(as({}).listSessions(null), { code: "UNAUTHORIZED", status: 401 });
  await assert.rejects(as({ cookie: "visitor=alice" }).listSessions(null), { code: "UNAUTHORIZED", status: 401 });
  assert.equal((await fetch(new URL("nothing.js", edge.url))).status, 404);
});

test("wrangler.jsonc names everything that the ready worker uses", () => {
  const text = fs.readFileSync(inRoot("www/worker/wrangler.jsonc"), "utf8").replace(/^\s*\/\/.*$/gm, "");
  const { main, durable_objects, migrations, assets } = JSON.parse(text);
  const source = fs.readFileSync(inRoot("www/worker", main), "utf8");
  const [{ name, class_name }] = durable_objects.bindings;
  assert.match(source, new RegExp(`export class ${class_name} extends AgentObject`));
  assert.match(source, new RegExp(`readonly ${name}:`));
  assert.match(source, new RegExp(`readonly ${assets.binding}:`));
  assert.deepEqual(migrations[0].new_sqlite_classes, [class_name]);
});
