// An agent in a Durable Object, asked over HTTP in workerd: its first answer, the CPU of a request, and what is deployed.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { Miniflare } from "miniflare";
import { writeObjectWorker } from "../bundle.mjs";

export async function measure(_name, { nRequests }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bench-"));
  try {
    await writeObjectWorker(folder);
    const files = fs.readdirSync(folder).sort((one) => (one.endsWith(".js") ? -1 : 1)).map((name) => path.join(folder, name));
    const bytes = files.reduce((sum, file) => sum + gzipSync(fs.readFileSync(file)).length, 0);
    return { "worker.bytes": bytes, ...(await asked(folder, files, nRequests)) };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function asked(folder, files, nRequests) {
  const start = performance.now();
  const miniflare = new Miniflare({
    modulesRoot: folder,
    modules: files.map((file) => ({ type: file.endsWith(".wasm") ? "CompiledWasm" : "ESModule", path: file })),
    compatibilityDate: "2026-04-01",
    durableObjects: { HELPER: { className: "Helper", useSQLite: true } },
  });
  const ask = async (n) => {
    const body = JSON.stringify({ input: `question ${n}` });
    const response = await miniflare.dispatchFetch(`http://worker/sessions/s${n % 10}/messages`, { method: "POST", body });
    const text = await response.text();
    if (!text.includes('"call-end"')) throw new Error(`the worker answered ${response.status} ${text.slice(0, 200)}`);
  };
  await miniflare.ready;
  await ask(0);
  const first = performance.now() - start;
  // What is compiled when it is first used is not the price of a request.
  for (let n = 0; n < 50; n++) await ask(n);
  const before = cpuMs();
  for (let n = 0; n < nRequests; n++) await ask(n);
  const cpu = (cpuMs() - before) / nRequests;
  await miniflare.dispose();
  return { "worker.first": first, ...(Number.isFinite(cpu) ? { "worker.cpu": cpu } : {}) };
}

/** The CPU that our workerd has used, in ms; only Linux tells. A tick is a hundredth of a second there. */
function cpuMs() {
  if (process.platform !== "linux") return Number.NaN;
  const stats = fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => read(`/proc/${pid}/stat`))
    // The name stands in brackets, and may hold anything.
    .map((text) => [/\((.*)\)/s.exec(text)?.[1], text.slice(text.lastIndexOf(")") + 2).split(" ")])
    .filter(([name, fields]) => name === "workerd" && Number(fields[1]) === process.pid);
  return stats.reduce((sum, [, fields]) => sum + (Number(fields[11]) + Number(fields[12])) * 10, 0);
}

function read(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}
