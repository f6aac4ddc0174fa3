// The types of the packed package and the contract: what agrees, what is still to come, and nothing else.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { compare, judge, pendingNames } from "../contract/api.mjs";
import { project } from "./project.mjs";

const packedDist = async () => path.join(await project(), "node_modules/lockgate/dist");

test("the public types agree with the contract, but for what is listed as pending", async (t) => {
  const found = await compare({ dist: await packedDist() });
  if (found === null)
    return t.diagnostic("there is no contract beside this checkout, so nothing was compared");
  assert.deepEqual(judge(found, pendingNames()), []);
  t.diagnostic(`${found.agreed.length} names agree, ${found.lacking.length} are still to come`);
});

test("a type that changes, goes, or loses an optional member is noticed", async (t) => {
  const dist = await packedDist();
  const changed = path.join(await project(), "changed");
  fs.cpSync(dist, changed, { recursive: true });
  const change = (file, from, to) => {
    const text = fs.readFileSync(path.join(changed, file), "utf8");
    assert.ok(text.includes(from), `${file} has no ${from}`);
    fs.writeFileSync(path.join(changed, file), text.replace(from, to));
  };
  change("message-types.d.ts", "readonly data: string", "readonly data: number");
  change("types.d.ts", "readonly queueLimit?: number", "readonly queueLimit: number");
  change("model-types.d.ts", "readonly topP?: number;", "");
  change("types.d.ts", '| "length"', "");
  change("index.d.ts", "export { textOf }", "export { textOf as textFrom }");
  const [before, after] = [await compare({ dist }), await compare({ dist: changed })];
  if (before === null)
    return t.diagnostic("there is no contract beside this checkout, so nothing was compared");
  const noticed = after.lacking.filter((name) => before.agreed.includes(name));
  for (const name of ["AgentOptions.queueLimit", "GenerateOptions", "Reason", "Source", "textOf"])
    assert.ok(noticed.includes(name), `${name} was not noticed`);
  assert.ok(!noticed.includes("Slot") && !noticed.includes("ErrorCode"));
});

test("the list of what is pending may only shrink", () => {
  const found = { agreed: ["Agent", "Call"], lacking: ["openai"] };
  assert.deepEqual(judge(found, ["openai"]), []);
  assert.match(judge(found, [])[0], /^openai disagrees/);
  assert.match(judge(found, ["Call", "openai"])[0], /^Call agrees .* now/);
  assert.match(judge(found, ["nobody", "openai"])[0], /^nobody is in/);
  assert.match(judge({ agreed: [], lacking: ["a", "b"] }, ["b", "a"])[0], /not sorted/);
});
