// The packed package with common package linters.
import assert from "node:assert/strict";
import process from "node:process";
import { capture, inRoot } from "../../src/build/run.mjs";
import { lend, tarball } from "../npm/support/project.mjs";
import { cell, folderWith, tool } from "./kit.mjs";

cell("publint", "--strict", async () => {
  const args = [tool("publint/src/cli.js"), "run", await tarball(), "--strict"];
  const { code, output } = await capture(process.execPath, args, { env: { NO_COLOR: "1" } });
  assert.equal(code, 0, output);
  assert.match(output, /All good/);
  return "nothing to say";
});

// The package has only ES modules. node.test.mjs tests `require` in the versions of Node that support it.
cell("attw", "--profile esm-only", async () => {
  const args = [tool("@arethetypeswrong/cli/dist/index.js"), await tarball(), "--profile", "esm-only", "--format", "ascii", "--no-emoji"];
  const { code, output } = await capture(process.execPath, [...args, "--exclude-entrypoints", "core.wasm"], { env: { NO_COLOR: "1" } });
  assert.equal(code, 0, output);
  assert.match(output, /^"lockgate\/slim"$/m);
  assert.doesNotMatch(output, /^(node16 \(from ESM\)|bundler): (?!OK)/m);
  return "no problems found";
});

// With different `lib` settings of a project. The declarations are checked too, and not skipped.
const program = `
import { createAgent, demoModel } from "lockgate";
import * as inline from "lockgate/inline";
import { init } from "lockgate/slim";
import { durableObjectStore } from "lockgate/stores/cloudflare";
import { fileStore } from "lockgate/stores/node";
import { redisStore } from "lockgate/stores/redis";
import { sqlStore } from "lockgate/stores/sql";
import { scriptedModel } from "lockgate/testing";
import { checkTranscript } from "lockgate/transcript";
const agent = await createAgent({ name: "helper", model: demoModel() });
console.log((await agent.call("Hello", { sessionId: "s" })).text, inline.createAgent, init(new Uint8Array(8)));
console.log(durableObjectStore, fileStore, redisStore, sqlStore, scriptedModel, checkTranscript);
`;

const hosts = {
  "Node alone, nodenext": { lib: ["ES2023"], module: "nodenext", moduleResolution: "nodenext" },
  "a page, bundler": { lib: ["ES2023", "DOM"], module: "esnext", moduleResolution: "bundler" },
  "a web worker, bundler": { lib: ["ES2023", "WebWorker"], module: "esnext", moduleResolution: "bundler" },
};
for (const [host, options] of Object.entries(hosts)) {
  cell("TypeScript", host, async () => {
    await lend("@types", "undici-types");
    const compilerOptions = { strict: true, noEmit: true, target: "ES2022", types: ["node"], ...options };
    const folder = await folderWith({
      "main.ts": program,
      "package.json": '{ "type": "module" }',
      "tsconfig.json": JSON.stringify({ compilerOptions, files: ["main.ts"] }),
    });
    const { code, output } = await capture(process.execPath, [inRoot("node_modules/typescript/bin/tsc"), "-p", folder]);
    assert.equal(code, 0, output);
    return "declarations checked";
  });
}
