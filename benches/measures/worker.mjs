// An agent in a Durable Object, used over HTTP in workerd: its first answer, the CPU of a request, and the size of the deployment.
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
    const response = await miniflare.dispatchFetch(`http://worker/sessions/s${n % 10}/messages`, { method: "POST", body, headers: { "content-type": "application/json" } });
    const text = await response.text();
    if (!text.includes('"call-end"')) throw new Error(`the worker answered ${response.status} ${text.slice(0, 200)}`);
  };
  try {
    await miniflare.ready;
    await ask(0);
    const first = performance.now() - start;
    // Compiling functions at their first use does not count as the cost of a request.
    for (let n = 0; n < 50; n++) await ask(n);
    const before = cpuMs();
    for (let n = 0; n < nRequests; n++) await ask(n);
    const cpu = (cpuMs() - before) / nRequests;
    return { "worker.first": first, ...(Number.isFinite(cpu) ? { "worker.cpu": cpu } : {}) };
  } finally {
    await miniflare.dispose();
  }
}

/** The CPU time that our workerd has used, in ms, or NaN if the system is not Linux. A tick of Linux is 10 ms. */
function cpuMs() {
  if (process.platform !== "linux") return Number.NaN;
  const stats = fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => read(`/proc/${pid}/stat`))
    // The name is in brackets and may contain any character.
    .map((text) => [/\((.*)\)/s.exec(text)?.[1], text.slice(text.lastIndexOf(")") + 2).split(" ")])
    .filter(([name, fields]) => name === "workerd" && Number(fields[1]) === process.pid);
  return stats.reduce((sum, [, fields]) => sum + (Number(fields[11]) + Number(fields[12])) * 10, 0);
}

function read(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    // The process has ended meanwhile.
    return "";
  }
}
