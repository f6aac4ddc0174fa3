// The wasm in two files: a page starts with the first, and code that needs the rest gets it at any time.
import assert from "node:assert/strict";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";
import { provider } from "../../../src/build/profile.mjs";
import { inRoot } from "../../../src/build/run.mjs";
import { answerWith, opened } from "../support/served.mjs";

const there = opened();
const isRest = (pathname) => pathname.endsWith("rest.wasm");

/** A page on a server that answers requests for rest.wasm with `rest(response, n)`. `asked` has the requests. */
async function withPage({ rest, headers = {} }, story) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://any");
    asked.push(pathname);
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (pathname === "/") return response.setHeader("content-type", "text/html").end('<!doctype html><link rel="icon" href="data:,">');
    if (pathname.startsWith("/v1/")) return provider(request, response);
    if (isRest(pathname) && rest !== undefined) return rest(response, asked.filter(isRest).length);
    const file = pathname === "/usual.mjs" ? inRoot("src/build/wasm/usual.mjs") : path.join(there.dist, pathname.slice("/dist/".length));
    return answerWith(file, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const context = await there.browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await story(page, asked);
  } finally {
    await context.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const serve = (response) => answerWith(path.join(there.dist, "rest.wasm"), response);
const lost = (response) => response.writeHead(404).end();

/** An agent that is first asked for something that needs the rest, and then has a simple conversation. */
const unusual = async () => {
  const { createAgent, customModel } = await import("/dist/entry/browser.js");
  const generate = async function* () {
    yield { type: "text", text: "hello" };
  };
  const agent = await createAgent({ name: "helper", model: customModel({ id: "m", generate }) });
  const slot = { sessionId: "s" };
  const told = [(await agent.call("Hello", slot)).text];
  const exported = await agent.exportSession(slot, "agentscope").catch(({ code, cause }) => `${code} ${cause?.code}`);
  told.push(exported.startsWith("{") ? "exported" : exported);
  told.push((await agent.call("Hello", slot)).text, (await agent.history(slot)).length);
  return told;
};

/** Both requests for the rest in the background fail; the synchronous request succeeds. */
const onlyWhenInsisted = (response, n) => (n <= 2 ? lost(response) : serve(response));

/** Two typical visits: their results, and how often they needed the rest. */
async function usualVisits() {
  const visits = [];
  await withPage({ rest: onlyWhenInsisted }, async (page, asked) => {
    for (const _ of ["first", "second"]) {
      asked.length = 0;
      if (visits.length > 0) await page.reload();
      const saw = await page.evaluate(() => import("/usual.mjs").then((story) => story.usual()));
      visits.push({ saw, needed: Math.max(0, asked.filter(isRest).length - 2) });
    }
  });
  return visits;
}

test("a simple conversation does not need the rest of the wasm: first questions, tools, a stop, mistakes, a refusal, a second visit", { timeout: 120_000 }, async () => {
  const needed = [];
  // On a busy machine the order of events may differ by chance. Code that really needs the rest needs it every time.
  for (let n = 0; n < 3 && !needed.includes(0); n += 1) {
    const visits = await usualVisits();
    for (const { saw } of visits) {
      assert.deepEqual(saw.said, ["Hello.", "Hello.", "Hello.", "Hello.", "interrupted", "ID_INVALID", "MODEL_BAD_REQUEST", "Hello.", "two words", "stop"]);
      assert.ok(saw.heard);
    }
    assert.equal(visits[1].saw.messages, 2 * visits[0].saw.messages);
    needed.push(visits[0].needed + visits[1].needed);
  }
  assert.ok(needed.includes(0), `a simple conversation needs the rest, ${needed.join(", ")} times: run \`npm run profile\``);
});

test("the rest comes in the background, once", { timeout: 60_000 }, async () => {
  await withPage({}, async (page, asked) => {
    const coming = page.waitForResponse((response) => isRest(new URL(response.url()).pathname));
    assert.deepEqual(await page.evaluate(unusual), ["hello", "exported", "hello", 4]);
    await (await coming).finished();
    assert.ok(asked.filter(isRest).length <= 2, asked.join(" "));
    assert.deepEqual(await page.evaluate(unusual), ["hello", "exported", "hello", 8]);
    assert.ok(asked.filter(isRest).length <= 2, asked.join(" "));
  });
});

test("a call that needs the rest before it has arrived loads it at once", { timeout: 60_000 }, async () => {
  let goOn;
  const inVain = new Promise((resolve) => (goOn = resolve));
  const rest = (response, n) => {
    if (n === 2) response.once("finish", goOn);
    return onlyWhenInsisted(response, n);
  };
  await withPage({ rest }, async (page, asked) => {
    await page.evaluate(() => import("/dist/entry/browser.js").then(({ createAgent, demoModel }) => createAgent({ name: "first", model: demoModel() })));
    await inVain;
    assert.deepEqual(await page.evaluate(unusual), ["hello", "exported", "hello", 4]);
    assert.equal(asked.filter(isRest).length, 3);
  });
});

test("if a page may not send synchronous requests, both parts of the wasm are loaded first", { timeout: 60_000 }, async () => {
  await withPage({ headers: { "permissions-policy": "sync-xhr=()" } }, async (page, asked) => {
    assert.deepEqual(await page.evaluate(unusual), ["hello", "exported", "hello", 4]);
    assert.equal(asked.filter(isRest).length, 1);
  });
});

test("V-12: if the rest of the wasm is lost, calls that need it report so, and no message is lost", { timeout: 60_000 }, async () => {
  await withPage({ rest: lost }, async (page) => {
    assert.deepEqual(await page.evaluate(unusual), ["hello", "ENGINE_CRASHED ENGINE_LOAD", "hello", 4]);
    assert.deepEqual(await page.evaluate(unusual), ["hello", "ENGINE_CRASHED ENGINE_LOAD", "hello", 8]);
  });
});

test("V-12: an agent that needs the rest of the wasm waits for it, and reports an error if it cannot be loaded", { timeout: 60_000 }, async () => {
  await withPage({ rest: lost }, async (page) => {
    const refused = await page.evaluate(async () => {
      const { createAgent, demoModel } = await import("/dist/entry/browser.js");
      return createAgent({ name: "helper", model: demoModel(), workspace: true }).catch(({ code, message, retryable }) => ({ code, message, retryable }));
    });
    assert.equal(refused.code, "ENGINE_LOAD");
    assert.match(refused.message, /rest\.wasm/);
    assert.equal(refused.retryable, true);
  });
});
