// The downloads of a visitor are within their budget.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { budgets, overBudget, pageFiles, pageSizes } from "../../../src/build/size.mjs";
import { desk, open } from "../page.mjs";

const { story, close } = await open();
after(close);

const folder = process.env.LOCKGATE_WWW;

test("the page is within the budgets in package.json", () => {
  const { page, "first visit": first, "whole visit": whole } = budgets();
  assert.equal(page.gzip, 60_000);
  assert.equal(first.gzip, 62_500);
  assert.deepEqual(overBudget(pageSizes(folder), { page, "first visit": first, "whole visit": whole }), []);
});

const asked = [];
const note = (context) =>
  context.on("request", (request) => asked.push(new URL(request.url()).pathname.slice(1) || "index.html"));

story("a visit loads only the measured files", { ...desk, before: note }, async (page) => {
  await page.waitForLoadState("networkidle");
  const { "first visit": first, "whole visit": whole } = pageFiles(folder);
  const loaded = [...new Set(asked)].filter((name) => !name.endsWith(".wasm"));
  // Without a window there is nowhere to show the icon.
  const isSeen = (name) => !name.endsWith(".svg");
  assert.deepEqual(loaded.filter(isSeen).sort(), whole.filter(isSeen).sort());
  assert.deepEqual(loaded.filter(isSeen).slice(0, first.length - 1).sort(), first.filter(isSeen).sort());
});
