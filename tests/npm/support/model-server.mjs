// A real language model: llama.cpp with a model of 135 million parameters, on a loopback port.
import { spawn } from "node:child_process";
import process from "node:process";
import { inRoot } from "../../../src/build/run.mjs";
import { findModelServer } from "../../../src/build/setup/model-server.mjs";

const found = findModelServer();
const PATIENCE_MS = 120_000;

/** Why tests with the model cannot run here; false if they can. They are left out aloud, and never counted as skipped. */
export const withoutModelServer = found ? false : "there is no model server here; `npm test` installs it if pip can";

/** Starts the server with a context window of this many tokens. It ends with this process, or with `stop`. */
export function startModelServer({ window }) {
  const { python, packages, model } = found;
  const script = inRoot("tests/npm/support/model-server.py");
  const child = spawn(python, [script, packages, model, String(window)], { stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return new Promise((resolve, reject) => {
    let [said, complaint] = ["", ""];
    const limit = setTimeout(stop, PATIENCE_MS);
    child.stdout.on("data", (text) => {
      said += text;
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
      if (!address) return;
      clearTimeout(limit);
      resolve({ url: `${address}/v1`, pid: child.pid, stop });
    });
    child.stderr.on("data", (text) => (complaint = (complaint + text).slice(-5_000)));
    child.on("error", reject);
    ended.then((code) => reject(new Error(`the model server ended with ${code} before it was ready:\n${complaint}`)));
  });
}
