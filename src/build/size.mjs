// Measures the sizes of downloads, and fails if a file is over its budget in package.json.
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { build } from "./build.mjs";
import { ONE_FILE } from "./package/one-file.mjs";
import { inRoot, main, problem } from "./run.mjs";
import { buildWww } from "./web/www.mjs";

/** Bytes of each measured file: `{ "core.wasm": { raw, gzip, brotli }, "core.js": …, "all js": … }`. */
export function sizes(folder = inRoot("dist")) {
  const read = (name) => fs.readFileSync(path.join(folder, name));
  if (!fs.existsSync(path.join(folder, "core.wasm")))
    throw problem(`${folder} has no core.wasm: run \`npm run build\` first.`);
  const scripts = fs
    .readdirSync(folder, { recursive: true })
    // The copy of the wasm is loaded only if the wasm file is lost. The bundle has the other scripts once more.
    .filter((name) => name.endsWith(".js") && name !== "inline-wasm.js" && name !== ONE_FILE)
    .sort();
  return {
    "core.wasm": measure(read("core.wasm")),
    "page.wasm": measure(read("page.wasm")),
    "rest.wasm": measure(read("rest.wasm")),
    "core.js": measure(read("core.js")),
    "all js": measure(Buffer.concat(scripts.map(read))),
  };
}

/**
 * The files of the built web UI without the wasm. `page`: the files of the web UI itself. `first visit`: the files that a browser
 * loads before a user can type, with the scripts of the package. `whole visit`: also the files that the page loads afterwards by
 * itself.
 */
export function pageFiles(folder = inRoot("target/www")) {
  const names = fs
    .readdirSync(folder, { recursive: true })
    .filter((name) => /\.(html|css|js|svg)$/.test(name));
  const index = fs.readFileSync(path.join(folder, "index.html"), "utf8");
  const isPackage = (name) => /^(lockgate|models|remote|ui-chunks|markdown|inline-wasm)-[^.]*\.js$/.test(path.basename(name));
  const isFirst = (name) => name === "index.html" || index.includes(path.basename(name));
  // The bundler's small runtime is loaded together with the files that follow.
  const follows = (name) => /^(later|rolldown-runtime)-/.test(path.basename(name));
  return {
    page: names.filter((name) => !isPackage(name)),
    "first visit": names.filter(isFirst),
    "whole visit": names.filter((name) => isFirst(name) || follows(name)),
  };
}

/** The sizes of these groups. Each file is compressed on its own, as it is served. */
export function pageSizes(folder = inRoot("target/www")) {
  const sum = (chosen) => total(chosen.map((name) => fs.readFileSync(path.join(folder, name))));
  return Object.fromEntries(Object.entries(pageFiles(folder)).map(([name, files]) => [name, sum(files)]));
}

/**
 * The bytes that a page loads for a minimal program with a tool, a provider's model and IndexedDB: the first part of the wasm and
 * all JavaScript. Each file is compressed on its own. `npm run bench` measures the same for other engines.
 */
export async function programSize() {
  const { pageFiles: filesOf } = await import("../../benches/bundle.mjs");
  return { program: total((await filesOf("lockgate")).map((file) => Buffer.from(file))) };
}

/** One sentence for each file that is larger than its budget. A budget is a size after gzip or brotli. */
export function overBudget(measured, budgets) {
  return Object.entries(budgets).flatMap(([name, budget]) => {
    const [[how, most]] = Object.entries(budget);
    const found = measured[name]?.[how];
    if (found === undefined)
      return [`package.json has a budget for ${name}, but ${name} is not measured`];
    if (found <= most) return [];
    return [`${name} is ${found - most} bytes over its budget: ${found} of ${most} bytes with ${how}`];
  });
}

/** The budgets of package.json, by file. */
export function budgets() {
  return JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8")).lockgate.budgets;
}

/** The total size of several files, each compressed on its own. */
function total(files) {
  const add = (one, other) => ({ raw: one.raw + other.raw, gzip: one.gzip + other.gzip, brotli: one.brotli + other.brotli });
  return files.map(measure).reduce(add);
}

function measure(bytes) {
  const params = {
    [zlib.constants.BROTLI_PARAM_QUALITY]: 11,
    [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return {
    raw: bytes.length,
    gzip: zlib.gzipSync(bytes, { level: 9 }).length,
    brotli: zlib.brotliCompressSync(bytes, { params }).length,
  };
}

function print(measured, limits) {
  const row = (...cells) =>
    console.log(
      cells
        .map((cell, at) =>
          String(cell)
            .padEnd(at ? 0 : 12)
            .padStart(at ? 14 : 0),
        )
        .join(""),
    );
  row("bytes", "raw", "gzip", "brotli", "budget");
  for (const [name, { raw, gzip, brotli }] of Object.entries(measured))
    row(name, raw, gzip, brotli, Object.entries(limits[name] ?? {}).map(([how, most]) => `${most} ${how}`).join());
}

await main(import.meta.url, async () => {
  const measured = { ...sizes(await build()), ...(await programSize()), ...pageSizes(await buildWww()) };
  const limits = budgets();
  print(measured, limits);
  const complaints = overBudget(measured, limits);
  for (const complaint of complaints) console.error(complaint);
  return complaints.length > 0 ? 1 : 0;
});
