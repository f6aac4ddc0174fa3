// A program with its own folders and its own process group, so that it and its children can be ended without touching others.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";

/** How long a program may take to say that it is ready. Only a program that hangs reaches it. */
const PATIENCE_MS = 60_000;

/** How long a program may take to end by itself. */
const ENDING_MS = 5_000;

const started = new Set();
process.on("exit", () => started.forEach((pid) => killGroup(pid)));
// A signal ends a process without the event "exit".
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.once(signal, () => process.exit(1));

/** Starts a program: `{ says, answers, end, kill }`. Its home folder is `profile`. */
export function startProgram(program, args, { profile, env = {} }) {
  const home = path.join(profile, "home");
  fs.mkdirSync(home, { recursive: true });
  const folders = { HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home, XDG_DATA_HOME: home, XDG_RUNTIME_DIR: home };
  const child = spawn(program, args, { detached: true, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...folders, ...env } });
  started.add(child.pid);
  const exited = Promise.race([once(child, "exit"), once(child, "error")]);
  let output = "";
  let isOver = false;
  let heard = () => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output = (output + text).slice(-100_000);
      heard();
    });
  }
  void exited.then(() => {
    isOver = true;
    heard();
  });
  const failed = (what) => new Error(`${program} ${what}:\n${output}`);

  /** Waits until the program has printed this. */
  const says = (pattern) =>
    new Promise((resolve, reject) => {
      const limit = setTimeout(() => reject(failed(`did not say ${pattern}`)), PATIENCE_MS);
      heard = () => {
        const found = pattern.exec(output);
        if (!found && !isOver) return;
        clearTimeout(limit);
        if (found) resolve(found);
        else reject(failed("has ended"));
      };
      heard();
    });

  /** Waits until the program answers at this address. */
  const answers = async (url) => {
    const until = Date.now() + PATIENCE_MS;
    while (!isOver && Date.now() < until) {
      const response = await fetch(url).catch(() => null);
      if (response?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw failed(isOver ? "has ended" : `does not answer at ${url}`);
  };

  const kill = async () => {
    killGroup(child.pid);
    await exited;
    started.delete(child.pid);
  };
  /** Waits until the program has ended by itself, and kills it if it does not. */
  const end = async () => {
    const limit = setTimeout(() => killGroup(child.pid), ENDING_MS);
    await exited;
    clearTimeout(limit);
    await kill();
  };
  return { says, answers, kill, end };
}

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
