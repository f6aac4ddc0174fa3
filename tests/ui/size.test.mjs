// What a visitor downloads is within its budget.
import assert from "node:assert/strict";
import { test } from "node:test";
import { budgets, overBudget, pageSizes } from "../../src/build/size.mjs";

test("the page is as small as package.json says", () => {
  const { page, "first visit": first } = budgets();
  assert.equal(page.gzip, 60_000);
  assert.deepEqual(overBudget(pageSizes(process.env.LOCKGATE_WWW), { page, "first visit": first }), []);
});
