// A Worker in workerd, bundled from the project like a user's worker, without Node compatibility.
import fs from "node:fs";
import path from "node:path";
import esbuild from "esbuild";
import { Miniflare } from "miniflare";
import { project } from "./project.mjs";

/** Starts a Worker of this source; `settings` are Miniflare's. `inputs` are the files that went into the bundle, which is in `outdir`. */
export async function startWorker(source, settings = {}) {
  const { outdir, inputs } = await bundle(source);
  const modules = fs
    .readdirSync(outdir)
    .sort((one) => (one.endsWith(".js") ? -1 : 1))
    .map((name) => ({
      type: name.endsWith(".wasm") ? "CompiledWasm" : "ESModule",
      path: path.join(outdir, name),
    }));
  const compatibilityDate = "2025-01-01";
  const miniflare = new Miniflare({ modulesRoot: outdir, modules, compatibilityDate, ...settings });
  await miniflare.ready;
  return { miniflare, inputs, outdir };
}

async function bundle(source) {
  const folder = await project();
  const name = `worker-${process.hrtime.bigint()}`;
  fs.writeFileSync(path.join(folder, `${name}.mjs`), source);
  const outdir = path.join(folder, name);
  const { metafile } = await esbuild.build({
    absWorkingDir: folder,
    entryPoints: [`${name}.mjs`],
    outdir,
    bundle: true,
    metafile: true,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker"],
    // Keeps the import, and puts the file beside the bundle: a Worker cannot compile bytes.
    loader: { ".wasm": "copy" },
    logLevel: "silent",
  });
  return { outdir, inputs: Object.keys(metafile.inputs) };
}
