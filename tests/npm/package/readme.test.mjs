// The examples in README and www/docs compile against the built package and run, and the sizes there are the budgets.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { after, test } from "node:test";
import esbuild from "esbuild";
import { inRoot } from "../../../src/build/run.mjs";
import { serve } from "../../../src/build/web/serve.mjs";
import { budgets, overBudget, programSize, sizes } from "../../../src/build/size.mjs";
import { launchOptions } from "../../chromium/support/options.mjs";
import { project, run } from "../support/project.mjs";
import { openProvider, speak } from "../support/provider.mjs";
import { startWorker } from "../support/worker.mjs";

/** README and the pages of www/docs: `{ file, text, examples }`. */
const pages = ["README.md", ...fs.readdirSync(inRoot("www/docs")).map((name) => `www/docs/${name}`)].map((file) => {
  const text = fs.readFileSync(inRoot(file), "utf8");
  return { file, text, examples: text.split(/^## /m).flatMap(examplesIn) };
});

/** The examples of a section with its heading: `{ heading, text }`. */
function examplesIn(section) {
  return [...section.matchAll(/^```ts\n(.*?)^```/gms)].map((match) => ({ heading: section.split("\n")[0], text: match[1] }));
}

/** The only example of a page, or of a section of it. */
function exampleOf(file, heading) {
  const { examples } = pages.find((page) => page.file === file);
  const found = examples.filter((each) => heading === undefined || each.heading === heading);
  assert.equal(found.length, 1, `${file} has ${found.length} examples under "${heading}"`);
  return found[0].text;
}

const asJs = (text) => esbuild.transformSync(text, { loader: "ts", format: "esm", target: "es2022" }).code;

test("the examples in README and www/docs compile, and are short", () => {
  const folder = inRoot("target/readme");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const all = pages.flatMap(({ file, examples }) => examples.map(({ text }) => ({ file, text })));
  assert.ok(all.length >= 8);
  all.forEach(({ file, text }, index) => {
    const length = text.trim().split("\n").length;
    assert.ok(length <= (file === "README.md" ? 15 : 18), `an example in ${file} has ${length} lines`);
    fs.writeFileSync(path.join(folder, `example-${index}.ts`), text);
  });
  const { exports } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const typed = Object.entries(exports).filter(([, { types }]) => types);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "ES2022",
    module: "ESNext",
    moduleResolution: "bundler",
    moduleDetection: "force",
    lib: ["ES2023", "DOM", "DOM.Iterable", "ESNext.Disposable"],
    types: ["node"],
    typeRoots: [inRoot("node_modules/@types")],
    paths: Object.fromEntries(typed.map(([name, { types }]) => [path.posix.join("lockgate", name), [path.posix.join("../..", types)]])),
  };
  fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  try {
    execFileSync(process.execPath, [inRoot("node_modules/typescript/bin/tsc"), "-p", folder], { encoding: "utf8" });
  } catch (error) {
    assert.fail(error.stdout);
  }
});

async function runs(text) {
  const { stdout, stderr, code } = await run(asJs(text));
  assert.equal(code, 0, stderr);
  return stdout;
}

test("README's example for Node runs", async () => {
  const said = await runs(exampleOf("README.md", "A first Node program"));
  assert.match(said, /`clock` answered: \S+ 2 6\n$/, said);
});

/** Runs an example whose model is at a local address, with a provider there that answers by `script`. */
async function runsWith(text, script) {
  const provider = await openProvider(script);
  try {
    const here = text.replaceAll("http://127.0.0.1:11434", provider.url);
    assert.notEqual(here, text);
    return { said: await runs(here), requests: provider.requests };
  } finally {
    await provider.close();
  }
}

test("the example for models runs", async () => {
  const { said, requests } = await runsWith(exampleOf("www/docs/models.md"), [{ body: speak.openai({ text: "Good day" }) }]);
  assert.equal(said, "Good day\n");
  assert.equal(requests[0].body.model, "qwen3");
});

test("the example for approvals runs: asked, answered, and answered again", async () => {
  const call = { body: speak.openai({ calls: [{ id: "c1", name: "post", input: { text: "our news" } }] }) };
  const { said } = await runsWith(exampleOf("www/docs/approvals.md"), [call, { body: speak.openai({ text: "It is out." }) }, { body: speak.openai({ text: "Another answer." }) }]);
  const [first, ...branches] = said.trim().split("\n");
  assert.equal(first, "It is out.");
  assert.equal(branches.length, 2);
  assert.equal(branches.filter((line) => line.endsWith("true")).length, 1);
});

test("the example for a store of your own runs", async () => {
  assert.match(await runs(exampleOf("www/docs/stores.md")), /pass [1-9]\d/);
});

test("the example for deleting old sessions runs", async () => {
  assert.equal(await runs(exampleOf("www/docs/keeping-and-deleting.md")), "");
});

test("README's example for an edge worker runs", async () => {
  const { miniflare } = await startWorker(asJs(exampleOf("README.md", "A first worker")));
  try {
    const ask = (body, user = "alice") => miniflare.dispatchFetch("http://worker/", { method: "POST", body, headers: { "x-user": user } });
    const answer = await (await ask("Hello there")).json();
    assert.match(answer.text, /“Hello there”/);
    const refused = await ask("Hello", "u".repeat(300));
    assert.equal(refused.status, 400);
    assert.equal((await refused.json()).code, "ID_INVALID");
  } finally {
    await miniflare.dispose();
  }
});

let browser;
after(() => browser?.close());

test("README's example for a page runs", { skip: process.env.CHROMIUM ? false : "there is no Chromium" }, async () => {
  const { chromium } = await import("playwright-core");
  const folder = path.join(await project(), "readme-page");
  fs.mkdirSync(folder);
  fs.cpSync(path.join(await project(), "node_modules/lockgate/dist"), path.join(folder, "lockgate"), { recursive: true });
  const page = '<!doctype html><link rel="icon" href="data:,"><title>readme</title><output></output><button></button><script type="module" src="./main.js"></script>';
  fs.writeFileSync(path.join(folder, "index.html"), page);
  fs.writeFileSync(path.join(folder, "main.js"), asJs(exampleOf("README.md", "A first page")).replace('"lockgate"', '"./lockgate/entry/browser.js"'));
  const served = await serve(folder);
  try {
    browser = await chromium.launch(launchOptions());
    const tab = await browser.newPage();
    const said = [];
    const listed = new Promise((resolve) => tab.on("console", (message) => said.push(message.text()) === 2 && resolve()));
    await tab.goto(served.url);
    await listed;
    assert.match(await tab.textContent("output"), /demo model/);
    assert.match(said[0], /^stored, version \d+$/);
    assert.match(said[1], /^Hello! Who are you\? \d{4}-/);
  } finally {
    await served.close();
  }
});

test("the wasm and its glue are within their budgets", () => {
  const { "core.wasm": wasm, "core.js": glue } = budgets();
  assert.deepEqual(overBudget(sizes(), { "core.wasm": wasm, "core.js": glue }), []);
});

test("the sizes in the documentation are the budgets in package.json", () => {
  const { text } = pages.find(({ file }) => file === "www/docs/loading.md");
  for (const [file, budget] of Object.entries(budgets())) {
    const number = Object.values(budget)[0].toLocaleString("en");
    assert.ok(text.includes(number), `www/docs/loading.md does not say ${number} for ${file}`);
  }
  assert.ok(pages[0].text.includes(budgets().program.brotli.toLocaleString("en")));
});

test("the files that a page loads before it answers are within the budget", async () => {
  const { program } = budgets();
  assert.deepEqual(overBudget(await programSize(), { program }), []);
  assert.equal(program.brotli, 228_500);
});

test("every link in README, llms.txt and www/docs leads to an existing file and heading", () => {
  for (const { file, text } of [...pages, { file: "llms.txt", text: fs.readFileSync(inRoot("llms.txt"), "utf8") }]) {
    const headings = new Set((text.match(/^## .*$/gm) ?? []).map((line) => line.slice(3).toLowerCase().replace(/ /g, "-")));
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]).filter((link) => !link.includes("://"));
    const leads = (link) => (link.startsWith("#") ? headings.has(link.slice(1)) : fs.existsSync(inRoot(path.dirname(file), link)));
    assert.deepEqual(links.filter((link) => !leads(link)), [], file);
  }
});

test("every file that the documentation of the package links to is in the package", async () => {
  const folder = path.join(await project(), "node_modules/lockgate");
  for (const file of [...pages.map((page) => page.file), "llms.txt"]) {
    const text = fs.readFileSync(path.join(folder, file), "utf8");
    const links = [...text.matchAll(/\]\(([^)#\s]+)\)/g)].map((match) => match[1]).filter((link) => !link.includes("://"));
    const missing = links.filter((link) => !fs.existsSync(path.join(folder, path.dirname(file), link)));
    assert.deepEqual(missing, [], file);
  }
});

test("README is short, and names every page of www/docs", () => {
  assert.ok(pages[0].text.split("\n").length <= 200);
  assert.deepEqual(pages.slice(1).filter(({ file }) => !pages[0].text.includes(`(${file})`)).map(({ file }) => file), []);
});

test("every file and folder that ARCHITECTURE.md and CONTRIBUTING.md name exists", () => {
  for (const file of ["ARCHITECTURE.md", "CONTRIBUTING.md"]) {
    const text = fs.readFileSync(inRoot(file), "utf8");
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]).filter((link) => !link.includes("://"));
    const paths = [...text.matchAll(/(?<![\w/.-])(?:src|www|tests|benches)\/[\w./-]*\w/g)].map((match) => match[0]);
    assert.ok(paths.length > 10, file);
    assert.deepEqual([...links, ...paths].filter((name) => !fs.existsSync(inRoot(name))), [], file);
  }
});

test("llms.txt names every entry of the package and every public function", () => {
  const text = fs.readFileSync(inRoot("llms.txt"), "utf8");
  const { exports } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const entries = Object.keys(exports).filter((name) => name !== "." && name !== "./package.json").map((name) => `lockgate/${name.slice(2)}`);
  const functions = Object.values(exports).filter(({ types }) => types).flatMap(({ types }) => {
    const declared = fs.readFileSync(inRoot(types), "utf8");
    return [...declared.matchAll(/^export declare (?:function|const|abstract class|class) (\w+)|^export \{ ([^}]*) \}/gm)].flatMap(([, one, many]) => one ?? many.split(", "));
  });
  assert.ok(functions.length > 15);
  assert.deepEqual([...entries, ...functions].filter((name) => !text.includes(name)), []);
});
