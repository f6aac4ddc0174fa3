// Builds everything and serves the edge worker with the web UI in workerd: `npm run edge [-- --port N]`.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { build } from "./build.mjs";
import { inRoot, main, problem } from "./run.mjs";
import { serve } from "./web/serve.mjs";
import { prepare } from "./setup/setup.mjs";
import { buildWww } from "./web/www.mjs";

const usage = "use `npm run edge -- [--port N]`";

/** Serves `www/worker` with the page in the folder `www`. Sessions are stored in the folder `state`. Returns `{ url, close }`. */
export async function serveEdge({ www, state, port = 0 }) {
  const outdir = inRoot("target/edge");
  await bundle(outdir);
  const { Miniflare, Request, fetch } = await import("miniflare");
  // Our own server provides the files, so that they have the headers of the web UI.
  const files = await serve(www);
  const at = ({ url, method, headers }) => {
    const { pathname, search } = new URL(url);
    return new Request(new URL(pathname + search, files.url), { method, headers });
  };
  const miniflare = new Miniflare({
    modulesRoot: outdir,
    modules: modulesOf(outdir),
    compatibilityDate: "2026-04-01",
    durableObjects: { HELPER: { className: "Helper", useSQLite: true } },
    durableObjectsPersist: state,
    serviceBindings: { ASSETS: (request) => fetch(at(request)) },
    host: "127.0.0.1",
    port,
  });
  const url = (await miniflare.ready).href;
  const close = async () => {
    await miniflare.dispose();
    await files.close();
  };
  return { url, close };
}

async function bundle(outdir) {
  const { default: esbuild } = await import("esbuild");
  fs.rmSync(outdir, { recursive: true, force: true });
  await esbuild.build({
    entryPoints: { worker: inRoot("www/worker/index.ts") },
    outdir,
    bundle: true,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker"],
    // Copies the file beside the bundle and keeps the import, because a worker cannot compile bytes.
    loader: { ".wasm": "copy" },
    logLevel: "warning",
  });
}

const modulesOf = (folder) =>
  fs
    .readdirSync(folder)
    .sort((one) => (one.endsWith(".js") ? -1 : 1))
    .map((name) => ({
      type: name.endsWith(".wasm") ? "CompiledWasm" : "ESModule",
      path: path.join(folder, name),
    }));

function readPort(args) {
  const [name, text = "", ...rest] = args.flatMap((arg) => arg.split("="));
  if (name === undefined) return 8787;
  const port = Number(text);
  if (name === "--port" && rest.length === 0 && port >= 1 && port <= 65_535) return port;
  throw problem(`${args.join(" ")} is not a valid option: ${usage}.`);
}

await main(import.meta.url, async (args) => {
  const port = readPort(args);
  await prepare(["npm", "rust", "wasm", "bindgen", "binaryen"], { quiet: true });
  await build();
  const { url, close } = await serveEdge({ www: await buildWww(), state: inRoot(".lockgate/edge"), port });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => close().then(() => process.exit(0)));
  console.log(`Lockgate is at ${url}, in workerd, with one Durable Object per visitor`);
});
