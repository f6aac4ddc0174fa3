// The packed package in workerd, bundled by wrangler as for a deployment, and by esbuild.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import zlib from "node:zlib";
import { Miniflare } from "miniflare";
import { capture } from "../../src/build/run.mjs";
import { startWorker } from "../npm/support/worker.mjs";
import { assertAnswer, cell, filesOf, folderWith, kb, program, tool } from "./kit.mjs";

const worker = `${program()}
export default { fetch: async () => Response.json(await answer().catch((error) => ({ failed: String(error), code: error.code }))) };
`;

const settings = { name: "packaging", main: "worker.js", compatibility_date: "2025-01-01" };

const ask = async (miniflare) => {
  try {
    return await (await miniflare.dispatchFetch("http://worker/")).json();
  } finally {
    await miniflare.dispose();
  }
};

cell("workerd", "wrangler deploy --dry-run, run in miniflare", async () => {
  const folder = await folderWith({ "worker.js": worker, "wrangler.jsonc": JSON.stringify(settings) });
  const args = [tool("wrangler/bin/wrangler.js"), "deploy", "--dry-run", "--outdir", "out"];
  const env = { WRANGLER_SEND_METRICS: "false", WRANGLER_LOG: "warn", HOME: folder, CI: "1", NODE_OPTIONS: "" };
  const { code, output } = await capture(process.execPath, args, { cwd: folder, env });
  assert.equal(code, 0, output);
  const out = path.join(folder, "out");
  const wasm = filesOf(out, ".wasm");
  assert.equal(wasm.length, 1, `wasm files: ${wasm}`);
  const modules = [
    { type: "ESModule", path: path.join(out, "worker.js") },
    { type: "CompiledWasm", path: path.join(out, wasm[0]) },
  ];
  const miniflare = new Miniflare({ modulesRoot: out, modules, compatibilityDate: settings.compatibility_date });
  assertAnswer(await ask(miniflare));
  const gzip = modules.reduce((sum, { path: file }) => sum + zlib.gzipSync(fs.readFileSync(file)).length, 0);
  return `1 wasm; ${kb(gzip)} gzip with the JavaScript`;
});

cell("workerd", "esbuild, run in miniflare", async () => {
  const { miniflare } = await startWorker(worker);
  assertAnswer(await ask(miniflare));
  return "answers";
});

cell("workerd", "lockgate/inline says what to do", async () => {
  const { miniflare } = await startWorker(worker.replace('from "lockgate"', 'from "lockgate/inline"'));
  const { failed, code } = await ask(miniflare);
  assert.equal(code, "ENGINE_LOAD");
  assert.match(failed, /compiling wasm is forbidden here/);
  return "ENGINE_LOAD: import lockgate itself";
});

cell("workerd", "lockgate/slim with an imported module", async () => {
  const source = `import module from "lockgate/core.wasm"; ${program("lockgate/slim", "await init(module);")}
    export default { fetch: async () => Response.json(await answer().catch((error) => ({ failed: String(error), code: error.code }))) };`;
  const { miniflare } = await startWorker(source);
  assertAnswer(await ask(miniflare));
  return "answers";
});
