// The deliberate bugs of the simulation are not in the package.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";
import { project } from "../support/project.mjs";

test("the packed engine has none of the deliberate bugs that the simulation must find", async () => {
  const source = fs.readFileSync(inRoot("src/seams.rs"), "utf8");
  const bugs = [...source.matchAll(/^ {4}\("([a-z-]+)", /gm)].map(([, name]) => name);
  assert.ok(bugs.length >= 15, `${bugs.length} bugs`);
  const file = path.join(await project(), "node_modules/lockgate/dist/core.wasm");
  const wasm = fs.readFileSync(file, "latin1");
  // Shorter names could be parts of other words.
  const long = bugs.filter((name) => name.length >= 12);
  assert.deepEqual(long.filter((name) => wasm.includes(name)), []);
});
