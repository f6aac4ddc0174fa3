// The web UI on the agent of a worker, in workerd: `npm run edge` in a real browser.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { serveEdge } from "../../../src/build/edge.mjs";
import { inRoot } from "../../../src/build/run.mjs";
import { launchOptions } from "../../chromium/support/browser.mjs";

test("messages of a page are kept in the visitor's object, and no other visitor sees them", { timeout: 120_000 }, async (t) => {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-edge-"));
  const edge = await serveEdge({ www: process.env.LOCKGATE_WWW ?? inRoot("target/www"), state });
  const browser = await chromium.launch(launchOptions());
  t.after(async () => {
    await browser.close();
    await edge.close();
    fs.rmSync(state, { recursive: true, force: true });
  });
  const visitor = await browser.newContext();
  const page = await visitor.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(edge.url);
  await page.locator("textarea").fill("Are you at the edge?");
  await page.keyboard.press("Enter");
  await page.locator(".answer").getByText("what the engine does with it.").waitFor();
  const [session] = await (await visitor.request.get(new URL("agent/sessions", edge.url).href)).json();
  assert.equal(session.title, "Are you at the edge?");
  await page.reload();
  await page.locator(".answer").getByText("You said: “Are you at the edge?”").waitFor();
  const other = await browser.newContext();
  await (await other.newPage()).goto(edge.url);
  assert.deepEqual(await (await other.request.get(new URL("agent/sessions", edge.url).href)).json(), []);
  assert.deepEqual(errors, []);
});
