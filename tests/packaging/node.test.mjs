// The packed package in several versions of Node, imported, required, and inside server bundles that lose the wasm file.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import esbuild from "esbuild";
import { capture } from "../../src/build/run.mjs";
import { assertAnswer, cell, filesOf, folderWith, kb, program, tool, toolModule } from "./kit.mjs";

// The first of 20, the last of 20, and 22. Only the first cannot `require` ES modules.
const versions = [
  { name: "node-20-first", requires: false },
  { name: "node-20", requires: true },
  { name: "node-22", requires: true },
].map((each) => ({ ...each, node: tool(each.name, "bin/node") }));

const skipOf = ({ node }) => (fs.existsSync(node) ? false : "npm has this version of Node for Linux on x64 only");
const versionOf = (name) => JSON.parse(fs.readFileSync(tool(name, "package.json"), "utf8")).version.replace(/^v/, "");
const placeOf = (each) => (skipOf(each) ? each.name : `Node ${versionOf(each.name)}`);

const env = { NODE_OPTIONS: "", NODE_NO_WARNINGS: "1" };

async function run(node, file) {
  const { code, stdout, output } = await capture(node, [file], { cwd: path.dirname(file), env });
  return { code, stdout, output };
}

async function answerOf(node, file) {
  const { code, stdout, output } = await run(node, file);
  assert.equal(code, 0, output);
  return JSON.parse(stdout);
}

const printing = "answer().then((value) => console.log(JSON.stringify(value)));\n";

/** Every entry point of the package for Node, each used once. */
const entries = (get) => `
  const { createAgent, demoModel, memoryStore } = ${get("lockgate")};
  const { fileStore } = ${get("lockgate/stores/node")};
  const { redisStore } = ${get("lockgate/stores/redis")};
  const { sqlStore } = ${get("lockgate/stores/sql")};
  const { durableObjectStore } = ${get("lockgate/stores/cloudflare")};
  const { scriptedModel } = ${get("lockgate/testing")};
  const { checkTranscript } = ${get("lockgate/transcript")};
  const inline = ${get("lockgate/inline")};
  const slim = ${get("lockgate/slim")};
  const early = await slim.createAgent({ name: "early", model: demoModel(), store: memoryStore() }).catch((error) => error.code);
  const agents = [];
  for (const { createAgent } of [inline, slim]) agents.push(await createAgent({ name: "helper", model: scriptedModel(["yes"]), store: memoryStore() }).catch((error) => error.code));
  const stores = [fileStore, redisStore, sqlStore, durableObjectStore].map((each) => typeof each);
  const files = await createAgent({ name: "files", model: scriptedModel(["kept"]), store: fileStore("./kept") });
  const { text } = await files.call("Hello", { sessionId: "s" });
  console.log(JSON.stringify({ early, agents: agents.map((each) => typeof each), stores, text, broken: checkTranscript([], "openai").length }));
`;

function assertEntries(seen) {
  assert.equal(seen.early, "ENGINE_LOAD", "lockgate/slim works before it has a wasm");
  // The realm has loaded the module by then.
  assert.deepEqual(seen.agents, ["object", "object"]);
  assert.deepEqual(new Set(seen.stores), new Set(["function"]));
  assert.equal(seen.text, "kept");
}

for (const each of versions) {
  const options = { skip: skipOf(each) };

  cell(placeOf(each), "import", async () => {
    const folder = await folderWith({ "main.mjs": program() + printing });
    assertAnswer(await answerOf(each.node, path.join(folder, "main.mjs")));
    return "answers";
  }, options);

  cell(placeOf(each), "import of every entry", async () => {
    const folder = await folderWith({ "main.mjs": entries((name) => `await import(${JSON.stringify(name)})`) });
    assertEntries(await answerOf(each.node, path.join(folder, "main.mjs")));
    return "9 entries, one module of wasm";
  }, options);

  cell(placeOf(each), each.requires ? "require" : "require, which it cannot", async () => {
    const source = `(async () => { ${entries((name) => `require(${JSON.stringify(name)})`)} })().catch((error) => { console.error(error); process.exitCode = 1; });`;
    const folder = await folderWith({ "main.cjs": source });
    const file = path.join(folder, "main.cjs");
    if (each.requires) {
      assertEntries(await answerOf(each.node, file));
      return "9 entries";
    }
    const { code, output } = await run(each.node, file);
    assert.notEqual(code, 0);
    assert.match(output, /ERR_REQUIRE_ESM/);
    assert.match(output, /dynamic import\(\)/);
    return "Node says ERR_REQUIRE_ESM and names import()";
  }, options);
}

/** A server bundle of one file, alone in another folder. */
async function serverBundle(format, extension) {
  const folder = await folderWith({ "main.mjs": program() + printing });
  const away = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bundle-"));
  process.on("exit", () => fs.rmSync(away, { recursive: true, force: true }));
  const outfile = path.join(away, `server.${extension}`);
  await esbuild.build({
    absWorkingDir: folder,
    entryPoints: ["main.mjs"],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format,
    logLevel: "silent",
  });
  return outfile;
}

for (const [format, extension] of [["esm", "mjs"], ["cjs", "cjs"]]) {
  cell("esbuild, server bundle", `${format}, the wasm file lost`, async () => {
    const file = await serverBundle(format, extension);
    assertAnswer(await answerOf(process.execPath, file));
    return `one file of ${kb(fs.statSync(file).size)}, the wasm inside it`;
  });
}

cell("webpack 5, server bundle", "cjs", async () => {
  const { default: webpack } = await toolModule("webpack/lib/index.js");
  const context = await folderWith({ "main.mjs": program() + printing });
  const out = path.join(context, "out");
  const compiler = webpack({ mode: "production", target: "node20", context, entry: "./main.mjs", output: { path: out, filename: "server.cjs" } });
  const stats = await new Promise((resolve, reject) => compiler.run((error, done) => (error ? reject(error) : resolve(done))));
  await new Promise((resolve) => compiler.close(resolve));
  assert.deepEqual(stats.toJson({ all: false, errors: true }).errors, []);
  assertAnswer(await answerOf(process.execPath, path.join(out, "server.cjs")));
  assert.equal(filesOf(out, ".wasm").length, 1);
  return "1 wasm beside the bundle";
});
