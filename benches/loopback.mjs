// Starts the provider in a process of its own, so that its work is not counted, and ends it.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs `work(baseUrl)` beside a provider whose answers have so many pieces. */
export async function withProvider(nDeltas, work) {
  const file = fileURLToPath(new URL("provider.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, String(nDeltas)], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const port = await new Promise((resolve, reject) => {
      child.stdout.once("data", (text) => resolve(Number(text)));
      child.once("close", () => reject(new Error("the provider did not start")));
    });
    return await work(`http://127.0.0.1:${port}/v1`);
  } finally {
    child.kill();
  }
}
