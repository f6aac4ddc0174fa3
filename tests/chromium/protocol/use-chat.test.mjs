// The real `useChat` of @ai-sdk/react in a real browser, against the worker in workerd.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import esbuild from "esbuild";
import { chromium } from "playwright-core";
import { inRoot } from "../../../src/build/run.mjs";
import { startHosted, startPlace, workerSource } from "../../npm/support/hosted.mjs";
import { launchOptions } from "../support/browser.mjs";

let browser, hosted, place, server;

before(async () => {
  place = await startPlace();
  // The page has another origin.
  hosted = await startHosted(place, { source: workerSource("", 'origins: ["*"],') });
  const { outputFiles } = await esbuild.build({
    entryPoints: [inRoot("tests/chromium/protocol/use-chat-page.mjs")],
    bundle: true,
    format: "esm",
    target: "es2022",
    define: { "process.env.NODE_ENV": '"production"' },
    write: false,
    logLevel: "silent",
  });
  server = http.createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? outputFiles[0].contents : '<!doctype html><link rel="icon" href="data:,"><div id="app"></div><script type="module" src="/page.js"></script>');
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await chromium.launch(launchOptions());
});

after(async () => {
  await browser?.close();
  await hosted?.stop();
  place?.close();
  server?.close();
  server?.closeAllConnections();
});

/** A test in a page with its own chat. */
function story(name, tell) {
  test(name, { timeout: 120_000 }, async () => {
    const id = name.replace(/\W+/g, "-");
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(`http://127.0.0.1:${server.address().port}/?api=${encodeURIComponent(hosted.url)}&id=${id}`);
    await page.waitForSelector("form");
    await tell(page, id);
    assert.deepEqual(errors, []);
    assert.equal(await page.locator(".error").count(), 0);
    await page.close();
  });
}

const say = async (page, text) => {
  await page.fill("input", text);
  await press(page, "Send");
};
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const ready = (page) => page.waitForSelector('main[data-status="ready"]');
const shows = (page, text) => page.getByText(text, { exact: true }).last().waitFor();
const articles = (page) => page.locator("article").evaluateAll((all) => all.map((each) => `${each.dataset.role}: ${[...each.querySelectorAll("p")].map((p) => p.textContent).join("|")}`));
const stored = async (id) => (await fetch(`${hosted.url}/sessions/${id}/history`, { headers: { "x-user": "alice" } })).json();

story("useChat sends a message and shows the answer while it is streamed", async (page) => {
  await say(page, "hello");
  await shows(page, "you said hello");
  await ready(page);
  await say(page, "hold stream");
  await shows(page, "one ");
  await page.waitForSelector('main[data-status="streaming"]');
  place.letGo("hold stream");
  await shows(page, "one two");
  await ready(page);
  assert.deepEqual(await articles(page), ["user: hello", "assistant: you said hello", "user: hold stream", "assistant: one two"]);
});

story("useChat shows a tool call and its result, even after a reload", async (page) => {
  await say(page, "use count chat");
  await shows(page, "the tool said: ran chat");
  await ready(page);
  const tool = page.locator(".tool-count");
  assert.equal(await tool.textContent(), "tool-count output-available ran chat");
  const before = await articles(page);
  await page.reload();
  await shows(page, "the tool said: ran chat");
  assert.equal(await tool.textContent(), "tool-count output-available ran chat");
  assert.deepEqual(await articles(page), before);
});

story("useChat asks for approval: an approval runs the tool once, a denial is sent to the model", async (page) => {
  await say(page, "use post yes");
  await press(page, "Approve");
  await shows(page, "the tool said: ran yes");
  await ready(page);
  assert.equal(await page.locator(".tool-post").getAttribute("data-state"), "output-available");
  assert.equal(place.ran.filter(({ word }) => word === "yes").length, 1);
  await say(page, "use post no");
  await press(page, "Deny");
  await page.waitForSelector('.tool-post[data-state="output-denied"]');
  await ready(page);
  assert.equal(place.ran.filter(({ word }) => word === "no").length, 0);
  assert.equal(await page.locator("article").count(), 4);
});

story("useChat submits the result of a tool that the page runs itself", async (page) => {
  await say(page, "use outside here");
  await press(page, "Do it");
  await shows(page, "the tool said: done in the page");
  await ready(page);
});

story("useChat stops an answer, and its text is kept", async (page, id) => {
  await say(page, "hold stop");
  await shows(page, "one ");
  await press(page, "Stop");
  await ready(page);
  const messages = await stored(id);
  assert.equal(messages.at(-1).content[0].text, "one ");
  place.letGo("hold stop");
  await say(page, "and on");
  await shows(page, "you said and on");
  await ready(page);
  await page.reload();
  await shows(page, "you said and on");
  assert.deepEqual(await articles(page), ["user: hold stop", "assistant: one ", "user: and on", "assistant: you said and on"]);
});

story("useChat regenerates an answer, and the old one stays as a branch", async (page, id) => {
  await say(page, "again");
  await shows(page, "you said again");
  await ready(page);
  // The second answer differs, so that the test notices it.
  place.answer = (text, response) => response.end(`once more: ${text}`);
  await press(page, "Regenerate");
  await shows(page, "once more: again");
  await ready(page);
  assert.deepEqual(await articles(page), ["user: again", "assistant: once more: again"]);
  assert.equal(place.asked.filter((text) => text === "again").length, 2);
  assert.equal((await stored(id)).length, 2);
  const branches = await (await fetch(`${hosted.url}/sessions/${id}/branches`, { headers: { "x-user": "alice" } })).json();
  assert.equal(branches.length, 2);
});

story("useChat continues a running answer after a reload", async (page) => {
  await say(page, "hold reload");
  await shows(page, "one ");
  await page.reload();
  await shows(page, "one ");
  assert.deepEqual(await articles(page), ["user: hold reload", "assistant: one "]);
  place.letGo("hold reload");
  await shows(page, "one two");
  await ready(page);
  assert.deepEqual(await articles(page), ["user: hold reload", "assistant: one two"]);
  assert.equal(place.asked.filter((text) => text === "hold reload").length, 1);
});

story("useChat shows the result of an approved tool that still ran during a reload", async (page) => {
  let letGo;
  const running = new Promise((resolve) => {
    place.onTool = () => (resolve(), new Promise((go) => (letGo = go)));
  });
  await say(page, "use post slow");
  await press(page, "Approve");
  await running;
  await page.reload();
  await page.waitForSelector(".tool-post");
  await page.waitForSelector('main[data-status="submitted"], main[data-status="streaming"]');
  place.onTool = undefined;
  letGo();
  await shows(page, "the tool said: ran slow");
  await ready(page);
  assert.equal(await page.locator("article").count(), 2);
  assert.equal(place.ran.filter(({ word }) => word === "slow").length, 1);
});
