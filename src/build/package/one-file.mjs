// Bundles the package for pages without a bundler: `lockgate.min.js`, a module that loads its wasm from its own folder.
import fs from "node:fs";
import path from "node:path";
import { problem } from "../run.mjs";

/** The name of the bundle in `dist/`. */
export const ONE_FILE = "lockgate.min.js";

/** Writes the bundle of a built `dist/`. */
export async function bundleOneFile(dist) {
  const { build } = await import("esbuild");
  await build({
    entryPoints: [path.join(dist, "entry/browser.js")],
    outfile: path.join(dist, ONE_FILE),
    bundle: true,
    format: "esm",
    minify: true,
    legalComments: "none",
    logLevel: "warning",
    plugins: [filesBeside],
  });
}

// The bundle is one folder above the modules that name the files of the wasm.
const filesBeside = {
  name: "files-beside",
  setup(build) {
    build.onResolve({ filter: /\/inline-wasm\.js$/ }, () => ({ path: "./inline-wasm.js", external: true }));
    build.onLoad({ filter: /\/load-browser\.js$/ }, ({ path: file }) => {
      const parts = fs.readFileSync(file, "utf8").split('new URL("../');
      if (parts.length !== 3) throw problem(`${file} names ${parts.length - 1} files of the wasm: adapt src/build/package/one-file.mjs.`);
      return { contents: parts.join('new URL("./') };
    });
  },
};
