// The time to the first answer in workerd, the runtime of Cloudflare Workers, with a new process and isolate.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Miniflare } from "miniflare";
import { writeWorker } from "../bundle.mjs";
import { withProvider } from "../loopback.mjs";
import { word } from "../script.mjs";

export async function measure(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bench-"));
  try {
    await writeWorker(name, folder);
    return await withProvider(1, (baseUrl) => firstAnswer(folder, baseUrl));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function firstAnswer(folder, baseUrl) {
  const start = performance.now();
  const miniflare = new Miniflare({
    modulesRoot: folder,
    modules: modulesOf(folder),
    compatibilityDate: "2025-09-01",
    compatibilityFlags: ["nodejs_compat"],
  });
  const body = JSON.stringify({ text: "hello", baseUrl });
  const ask = async () => {
    const response = await miniflare.dispatchFetch("http://worker/", { method: "POST", body });
    const text = await response.text();
    if (text !== word) throw new Error(`the Worker answered ${response.status} ${text.slice(0, 200)}`);
  };
  await miniflare.ready;
  const ready = performance.now();
  await ask();
  const found = { edge: performance.now() - start, "edge.first": performance.now() - ready };
  await miniflare.dispose();
  return found;
}

const modulesOf = (folder) =>
  fs
    .readdirSync(folder)
    .sort((one) => (one.endsWith(".js") ? -1 : 1))
    .map((name) => ({ type: name.endsWith(".wasm") ? "CompiledWasm" : "ESModule", path: path.join(folder, name) }));
