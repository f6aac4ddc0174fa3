// Bundles a program of one of the engines, for a page or for a Worker.
import fs from "node:fs";
import path from "node:path";
import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const entry = { page: here("../dist/entry/browser.js"), worker: here("../dist/entry/workerd.js") };
/** The only file besides the bundle that a page fetches before it works; the rest of the wasm comes later. */
const wasm = here("../dist/page.wasm");

/** The bytes of the files that a page loads later in the background. */
export const laterFiles = (name) => (name === "lockgate" ? [fs.readFileSync(here("../dist/rest.wasm"))] : []);

/** The bytes of every file that a page loads before it answers. Chunks that a program imports only when it needs them are left out. */
export async function pageFiles(name) {
  const { outputFiles, metafile } = await esbuild.build({
    ...common,
    stdin: stdin(`import { answer } from "./programs/${name}.mjs"; globalThis.answer = answer;`),
    write: false,
    splitting: true,
    outdir: here("."),
    metafile: true,
    minify: true,
    platform: "browser",
    // A page loads this copy of the wasm only if the file is lost, but esbuild would put it into the bundle.
    external: ["*/inline-wasm.js"],
    alias: { lockgate: entry.page },
  });
  const loaded = new Set();
  const load = (output) => {
    if (loaded.has(output)) return;
    loaded.add(output);
    for (const { path, kind } of metafile.outputs[output].imports) if (kind === "import-statement") load(path);
  };
  load(Object.keys(metafile.outputs).find((output) => metafile.outputs[output].entryPoint !== undefined));
  const isLoaded = ({ path: file }) => [...loaded].some((output) => path.resolve(output) === file);
  const files = outputFiles.filter(isLoaded).map(({ contents }) => contents);
  return name === "lockgate" ? [...files, fs.readFileSync(wasm)] : files;
}

/** Writes a Worker that answers requests into a folder. */
export async function writeWorker(name, outdir) {
  await writeBundle(outdir, `
    import { answer } from "./programs/${name}.mjs";
    export default { async fetch(request) {
      const { text, baseUrl } = await request.json();
      return new Response(await answer(text, baseUrl));
    } };`);
}

/** Writes the Worker with an agent in a Durable Object into a folder. */
export async function writeObjectWorker(outdir) {
  await writeBundle(outdir, 'export * from "./programs/object.mjs"; export { default } from "./programs/object.mjs";');
}

async function writeBundle(outdir, source) {
  await esbuild.build({
    ...common,
    stdin: stdin(source),
    outdir,
    entryNames: "worker",
    minify: true,
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    plugins: [prefixed],
    // Keeps the import and puts the file beside the bundle, because a Worker cannot compile bytes.
    loader: { ".wasm": "copy" },
    alias: { lockgate: entry.worker, "lockgate/cloudflare": here("../dist/entry/cloudflare-workerd.js") },
  });
}

const stdin = (contents) => ({ contents, resolveDir: here(".") });
const common = { bundle: true, format: "esm", target: "es2022", logLevel: "silent" };

// Workers have Node's modules only with the prefix `node:`.
const prefixed = {
  name: "node-prefix",
  setup: ({ onResolve }) => {
    const filter = new RegExp(`^(${builtinModules.join("|")})$`);
    onResolve({ filter }, ({ path }) => ({ path: `node:${path}`, external: true }));
  },
};
