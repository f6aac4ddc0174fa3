// The packed package in pages and web workers, with common bundlers.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import esbuild from "esbuild";
import * as vite from "vite";
import { serve } from "../../src/build/web/serve.mjs";
import { launchOptions } from "../chromium/support/options.mjs";
import { project } from "../npm/support/project.mjs";
import { assertAnswer, cell, filesOf, folderWith, html, kb, openPage, program, shown, sizeOf, toolModule } from "./kit.mjs";

const page = { "index.html": html('<script type="module" src="./main.js"></script>'), "main.js": shown, "program.js": program() };

// The worker and the page both use the package, but each part of the wasm is fetched once.
const inWorker = {
  ...page,
  "program.js": `${program()}
    export const unused = import.meta.url;`,
  "worker.js": 'import { answer } from "./program.js"; answer().then((value) => postMessage(value), (error) => postMessage({ failed: String(error) }));',
  "main.js": `
    import { answer } from "./program.js";
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.onmessage = async ({ data }) => { globalThis.answered = { ...data, page: await answer() }; };
  `,
};

const isWasm = (url) => /\.wasm(\?|$)/.test(url);
const isInline = (url) => /inline-wasm/.test(url);

/** A strict policy without Trusted Types, because bundlers use plain text as the URL of a worker. */
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; style-src 'self'; img-src data:; base-uri 'none'";

/** Opens a folder of files under a strict policy, and checks the answer and the requests. */
async function openFolder(folder) {
  const served = await serve(folder, 0, policy);
  try {
    return await openPage(served.url);
  } finally {
    await served.close();
  }
}

function assertOneFile(folder, { asked }) {
  assert.equal(filesOf(folder, ".wasm").length, 1, `wasm files: ${filesOf(folder, ".wasm")}`);
  assert.equal(asked.filter(isWasm).length, 1, "the wasm was not fetched once");
  assert.deepEqual(asked.filter(isInline), [], "the copy inside the package was fetched");
}

/** The two parts of the wasm, each in the bundle once. The second may load after the answer. */
function assertParts(folder, { asked }) {
  assert.equal(filesOf(folder, ".wasm").length, 2, `wasm files: ${filesOf(folder, ".wasm")}`);
  const fetched = asked.filter(isWasm);
  assert.ok(fetched.length >= 1 && new Set(fetched).size === fetched.length, `fetched: ${fetched}`);
  assert.deepEqual(asked.filter(isInline), [], "the copy inside the package was fetched");
}

/** The files that a page loads. The chunk with the copy inside the package is in the bundle, but is not loaded. */
const built = (folder, { asked }) => {
  const loaded = filesOf(folder, ".js").filter((name) => asked.some((url) => new URL(url).pathname === `/${name}`));
  const wasm = filesOf(folder, ".wasm").map((name) => kb(sizeOf(folder, [name])));
  return `wasm of ${wasm.join(" and ")}, ${kb(sizeOf(folder, loaded))} of JavaScript loaded`;
};

async function viteBuild(files) {
  const root = await folderWith(files);
  const outDir = path.join(root, "out");
  await vite.build({ root, configFile: false, logLevel: "silent", build: { outDir, target: "es2022" }, worker: { format: "es" } });
  return outDir;
}

cell("Vite", "build", async () => {
  const folder = await viteBuild(page);
  const seen = await openFolder(folder);
  assertAnswer(seen.answer);
  assertParts(folder, seen);
  return built(folder, seen);
});

cell("Vite", "build, page and web worker", async () => {
  const folder = await viteBuild(inWorker);
  const seen = await openFolder(folder);
  assertAnswer(seen.answer);
  assertAnswer(seen.answer.page);
  assert.equal(filesOf(folder, ".wasm").length, 2);
  assert.deepEqual(seen.asked.filter(isInline), []);
  return built(folder, seen);
});

cell("Vite", "dev server, as it comes", async () => {
  const root = await folderWith(page);
  const cacheDir = path.join(root, ".vite");
  const server = await vite.createServer({ root, cacheDir, configFile: false, logLevel: "silent", server: { host: "127.0.0.1", port: 0 } });
  try {
    await server.listen();
    const { answer, asked } = await openPage(`http://127.0.0.1:${server.httpServer.address().port}/`);
    assertAnswer(answer);
    return asked.some(isInline) ? "pre-bundling loses the file: the inline chunk takes its place" : "the file is served";
  } finally {
    await server.close();
  }
});

async function webpackBuild(files, entry = "./main.js") {
  const { default: webpack } = await toolModule("webpack/lib/index.js");
  const context = await folderWith(files);
  const output = path.join(context, "out");
  const compiler = webpack({ mode: "production", context, entry, output: { path: output, filename: "main.js" }, performance: false });
  const stats = await new Promise((resolve, reject) => compiler.run((error, done) => (error ? reject(error) : resolve(done))));
  await new Promise((resolve) => compiler.close(resolve));
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  assert.deepEqual([...errors, ...warnings].map(({ message }) => message), []);
  fs.writeFileSync(path.join(output, "index.html"), html('<script src="./main.js" defer></script>'));
  return output;
}

cell("webpack 5", "build", async () => {
  const folder = await webpackBuild(page);
  const seen = await openFolder(folder);
  assertAnswer(seen.answer);
  assertParts(folder, seen);
  return built(folder, seen);
});

cell("webpack 5", "build, page and web worker", async () => {
  const folder = await webpackBuild(inWorker);
  const seen = await openFolder(folder);
  assertAnswer(seen.answer);
  assertAnswer(seen.answer.page);
  assert.equal(filesOf(folder, ".wasm").length, 2);
  return built(folder, seen);
});

const esbuilt = async (files, options) => {
  const folder = await folderWith(files);
  const outdir = path.join(folder, "out");
  await esbuild.build({ absWorkingDir: folder, entryPoints: ["main.js"], outdir, bundle: true, minify: true, target: "es2022", logLevel: "silent", ...options });
  fs.writeFileSync(path.join(outdir, "index.html"), files["index.html"]);
  return outdir;
};

cell("esbuild", "page, the wasm file lost", async () => {
  const folder = await esbuilt(page, { format: "esm", splitting: true });
  const { answer } = await openFolder(folder);
  assertAnswer(answer);
  return "esbuild copies no wasm: the inline chunk takes its place";
});

cell("esbuild", "page, lockgate/slim and a copied wasm", async () => {
  const before = 'await init(new URL("./core.wasm", import.meta.url));';
  const folder = await esbuilt({ ...page, "program.js": program("lockgate/slim", before) }, { format: "esm" });
  fs.copyFileSync(path.join(await project(), "node_modules/lockgate/dist/core.wasm"), path.join(folder, "core.wasm"));
  const seen = await openFolder(folder);
  assertAnswer(seen.answer);
  assertOneFile(folder, seen);
  return built(folder, seen);
});

cell("file:// page", "lockgate/inline in a plain script", async () => {
  const files = { ...page, "program.js": program("lockgate/inline"), "index.html": html('<script src="./main.js"></script>') };
  const folder = await esbuilt(files, { format: "iife" });
  const { answer } = await openPage(pathToFileURL(path.join(folder, "index.html")).href);
  assertAnswer(answer);
  return `one script of ${kb(fs.statSync(path.join(folder, "main.js")).size)}`;
});

cell("no bundler", "page and web worker, served as it is", async () => {
  const folder = await folderWith({});
  fs.cpSync(path.join(await project(), "node_modules/lockgate/dist"), path.join(folder, "lockgate"), { recursive: true });
  const direct = (text) => text.replace('from "lockgate"', 'from "./lockgate/entry/browser.js"');
  for (const [name, text] of Object.entries(inWorker)) fs.writeFileSync(path.join(folder, name), direct(text));
  const { answer, asked } = await openFolder(folder);
  assertAnswer(answer);
  assertAnswer(answer.page);
  assert.deepEqual(asked.filter(isInline), []);
  return "both answer";
});

cell("no bundler", "lockgate.min.js", async () => {
  const folder = await folderWith({});
  const dist = path.join(await project(), "node_modules/lockgate/dist");
  for (const name of ["lockgate.min.js", "page.wasm", "rest.wasm"]) fs.copyFileSync(path.join(dist, name), path.join(folder, name));
  for (const [name, text] of Object.entries(page)) fs.writeFileSync(path.join(folder, name), text);
  fs.writeFileSync(path.join(folder, "program.js"), program("./lockgate.min.js"));
  const { answer, asked } = await openFolder(folder);
  assertAnswer(answer);
  const ofPackage = asked.filter((address) => /lockgate|wasm/.test(address));
  // The second wasm file may be fetched after the answer.
  assert.ok(new Set(ofPackage).size === ofPackage.length && ofPackage.length <= 3, asked.join());
  return `${kb(fs.statSync(path.join(folder, "lockgate.min.js")).size)} of JavaScript and two wasm files`;
});

// The policy of extensions allows only their own scripts, and wasm only if the manifest allows it.
const manifest = {
  manifest_version: 3,
  name: "packaging",
  version: "1",
  background: { service_worker: "main.js" },
  content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'" },
};

cell("browser extension", "lockgate/inline in a service worker", async () => {
  const { chromium } = await import("playwright-core");
  const folder = await esbuilt({ ...page, "program.js": program("lockgate/inline"), "index.html": "" }, { format: "iife" });
  fs.writeFileSync(path.join(folder, "manifest.json"), JSON.stringify(manifest));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-extension-"));
  const { args, ...options } = launchOptions();
  const extension = [`--disable-extensions-except=${folder}`, `--load-extension=${folder}`];
  const context = await chromium.launchPersistentContext(profile, { ...options, ignoreDefaultArgs: ["--disable-extensions"], args: [...args, ...extension] });
  try {
    const [worker = await context.waitForEvent("serviceworker", { timeout: 30_000 })] = context.serviceWorkers();
    assertAnswer(await worker.evaluate(() => globalThis.answering));
    return `one script of ${kb(fs.statSync(path.join(folder, "main.js")).size)}, nothing fetched`;
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
});
