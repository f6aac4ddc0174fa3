// Helpers of all build scripts: run programs, print one line per step with its time, explain errors.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The repository. */
export const root = path.resolve(fileURLToPath(new URL("../..", import.meta.url)));

/** A path inside the repository. */
export const inRoot = (...parts) => path.join(root, ...parts);

/** An error that the user can fix. Only its message is shown, without a stack. */
export function problem(message, output = "") {
  return Object.assign(new Error(message), { isProblem: true, output });
}

/** Runs `work` if the file with this URL was started directly. The returned number is the exit code. */
export async function main(url, work) {
  const started = process.argv[1] !== undefined && fs.realpathSync(process.argv[1]);
  if (started !== fileURLToPath(url)) return;
  try {
    checkNode();
    process.exitCode = (await work(process.argv.slice(2))) ?? 0;
  } catch (error) {
    explain(error);
    process.exitCode = 1;
  }
}

/** Prints an error: first the output of the tool, then the advice. */
export function explain(error) {
  if (error.output) process.stderr.write(`${error.output.trimEnd()}\n`);
  console.error(error.isProblem ? error.message : error.stack);
}

/** Runs `work` as one step: prints one line with its time, and the progress of a long step. */
export async function step(title, work, { silentUnderMs = 0 } = {}) {
  const started = Date.now();
  const line = process.stdout.isTTY && !process.env.CI ? liveLine(title) : plainLine(title);
  try {
    const value = await work(line.show);
    line.close();
    if (Date.now() - started >= silentUnderMs) console.log(`${title} (${seconds(started)} s)`);
    return value;
  } catch (error) {
    line.close();
    console.log(`${title}: failed after ${seconds(started)} s`);
    throw error;
  }
}

/** Seconds since a moment, with one decimal. */
export const seconds = (started) => ((Date.now() - started) / 1000).toFixed(1);

/** Runs a program to its end and returns its output. `show` gets the latest line. */
export function capture(command, args, { cwd = root, env = {}, show = () => {} } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return collect(child, (text) => {
    const line = text.trimEnd().split("\n").at(-1);
    if (line) show(line.trim());
  });
}

/** Like `capture`, and prints the output as it arrives. */
export function tee(command, args, { cwd = root, env = {} } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return collect(child, (text) => process.stdout.write(text));
}

/** Like `capture`, but a failure throws a problem with the program's output and `advice`. */
export async function must(command, args, { advice, ...options }) {
  const done = await capture(command, args, options);
  if (done.code !== 0) throw problem(advice, done.output);
  return done;
}

/** The path of a program on the PATH, or null. */
export function which(name) {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.map((folder) => path.join(folder, name + exe)).find(isRunnable) ?? null;
}

/** The file name extension of programs on this platform. */
export const exe = process.platform === "win32" ? ".exe" : "";

/** The command and first arguments that run npm. They work whether or not npm started this process. */
export function npmCommand() {
  const script = process.env.npm_execpath;
  return script?.endsWith(".js") ? [process.execPath, script] : ["npm"];
}

export function isRunnable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

// 20.19 and not 20.0, because Vite asks for it. The package itself runs on any Node 20.
function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw problem(
    `Node 20.19 or newer is needed, this is ${process.versions.node}: install it with \`nvm install 22\` or from https://nodejs.org, then run this again.`,
  );
}

function collect(child, onOutput) {
  return new Promise((resolve) => {
    let stdout = "";
    let output = "";
    const keep = (text) => {
      output += text;
      onOutput(text);
    };
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      keep(text);
    });
    child.stderr.setEncoding("utf8").on("data", keep);
    child.on("error", (error) =>
      resolve({ code: 127, stdout, output: `${output}${error.message}\n` }),
    );
    child.on("close", (code, signal) => {
      if (signal) output += `ended by ${signal}\n`;
      resolve({ code: code ?? 1, stdout, output });
    });
  });
}

// On a terminal: one line that is rewritten, with the seconds and the last line of the tool's output.
function liveLine(title) {
  const started = Date.now();
  let latest = "";
  const draw = () => {
    const text = `${Math.floor((Date.now() - started) / 1000)} s  ${title} … ${latest}`;
    process.stdout.write(`\r\x1b[2K${text.slice(0, (process.stdout.columns || 80) - 1)}`);
  };
  const timer = setInterval(draw, 250);
  return {
    show: (line) => {
      latest = line.replace(/\x1b\[[0-9;]*m/g, "");
    },
    close: () => {
      clearInterval(timer);
      process.stdout.write("\r\x1b[2K");
    },
  };
}

// In a log: nothing for a quick step, a line every 30 seconds for a long one.
function plainLine(title) {
  const started = Date.now();
  let timer = setTimeout(function again() {
    console.log(`${title} … ${Math.round((Date.now() - started) / 1000)} s`);
    timer = setTimeout(again, 30_000);
  }, 5_000);
  return { show: () => {}, close: () => clearTimeout(timer) };
}
