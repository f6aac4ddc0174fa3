// What other people's linters say about the packed package.
import assert from "node:assert/strict";
import process from "node:process";
import { capture } from "../../src/build/run.mjs";
import { tarball } from "../npm/project.mjs";
import { cell, tool } from "./kit.mjs";

cell("publint", "--strict", async () => {
  const args = [tool("publint/src/cli.js"), "run", await tarball(), "--strict"];
  const { code, output } = await capture(process.execPath, args, { env: { NO_COLOR: "1" } });
  assert.equal(code, 0, output);
  assert.match(output, /All good/);
  return "nothing to say";
});

// The package is ES modules only; that `require` works where Node can do that is tried in node.test.mjs.
cell("attw", "--profile esm-only", async () => {
  const args = [tool("@arethetypeswrong/cli/dist/index.js"), await tarball(), "--profile", "esm-only", "--format", "ascii", "--no-emoji"];
  const { code, output } = await capture(process.execPath, [...args, "--exclude-entrypoints", "core.wasm"], { env: { NO_COLOR: "1" } });
  assert.equal(code, 0, output);
  assert.match(output, /^"lockgate\/slim"$/m);
  assert.doesNotMatch(output, /^(node16 \(from ESM\)|bundler): (?!OK)/m);
  return "no problems found";
});
