// An empty project with the packed package, and stories: test functions that run there like a user's program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { capture, inRoot, must, npmCommand } from "../../../src/build/run.mjs";

/** The time limit of a program. Only a program that hangs reaches it. */
const PATIENCE_MS = 30_000;

/** How long a program may take to exit when it is done. The shortest deadline of the engine is twice as long. */
const LINGER_MS = 5_000;

let made;

/** The folder of a project with nothing but the package. It is made once per test file, and removed afterwards. */
export function project() {
  made ??= make();
  return made;
}

/** The packed package. */
export async function tarball() {
  if (process.env.LOCKGATE_TARBALL) return path.resolve(process.env.LOCKGATE_TARBALL);
  const folder = await project();
  return path.join(
    folder,
    fs.readdirSync(folder).find((name) => name.endsWith(".tgz")),
  );
}

async function make() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-project-"));
  process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
  fs.writeFileSync(path.join(folder, "package.json"), '{ "name": "empty", "private": true }\n');
  const given = process.env.LOCKGATE_TARBALL;
  await install(given ? path.resolve(given) : await pack(folder), folder);
  return folder;
}

// For a single test file that is run by hand: `npm test` packs once for all test files.
async function pack(folder) {
  const [npm, ...first] = npmCommand();
  const args = [...first, "pack", "--ignore-scripts", "--pack-destination", folder];
  await must(npm, args, { advice: "npm could not pack the package: run `npm run build` first." });
  return path.join(
    folder,
    fs.readdirSync(folder).find((name) => name.endsWith(".tgz")),
  );
}

async function install(file, folder) {
  const [npm, ...first] = npmCommand();
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier"];
  const advice = "npm could not install the packed package into an empty project.";
  await must(npm, [...first, "install", ...flags, file], { cwd: folder, advice });
}

/** Imports a module of the packed package into this process. */
export async function packedModule(name) {
  const file = path.join(await project(), `load-${process.hrtime.bigint()}.mjs`);
  fs.writeFileSync(file, `export * from ${JSON.stringify(name)};\n`);
  return import(pathToFileURL(file).href);
}

/** Lets programs of the project use a package that is installed in the checkout. */
export async function lend(...names) {
  const folder = await project();
  for (const name of names) {
    const link = path.join(folder, "node_modules", name);
    if (!fs.existsSync(link)) fs.symlinkSync(inRoot("node_modules", name), link, "junction");
  }
}

/** Runs a program in the project to its end. Returns its exit code and output. The program has its own folder. */
export async function run(source, { extension = "mjs", env = {}, args = [], patienceMs = PATIENCE_MS } = {}) {
  const folder = await project();
  const name = `program-${process.hrtime.bigint()}`;
  const file = path.join(folder, `${name}.${extension}`);
  fs.writeFileSync(file, source);
  fs.mkdirSync(path.join(folder, name));
  return runFile(file, { cwd: path.join(folder, name), env, args, patienceMs });
}

function runFile(file, { cwd, env, args, patienceMs }) {
  const child = spawn(process.execPath, [...args, file], {
    cwd,
    env: { ...process.env, NODE_OPTIONS: "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "", lingered: false };
  return new Promise((resolve, reject) => {
    let limit = setTimeout(() => child.kill("SIGKILL"), patienceMs);
    child.stderr.on("data", (text) => (said.stderr += text));
    child.stdout.on("data", (text) => {
      said.stdout += text;
      if (!said.stdout.includes(DONE)) return;
      clearTimeout(limit);
      limit = setTimeout(() => {
        said.lingered = true;
        child.kill("SIGKILL");
      }, LINGER_MS);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      resolve({ ...said, code, signal });
    });
  });
}

const DONE = "\n--- done ---\n";

/**
 * Runs a story in its own process. The source of the function is written into a program, so it can use only its parameters. The
 * first parameter has all exports of the package, `lockgate/testing`, the kit, the scripted provider and `assert`. A long story
 * sets `given.patienceMs`. The story fails if it throws, if a rejection is not handled, or if the process does not exit after it.
 */
export async function tell(story, given = null, modules = packed) {
  await placeKit(modules);
  const { stdout, stderr, code, signal, lingered } = await run(programOf(story, given, modules), given?.patienceMs ? { patienceMs: given.patienceMs } : {});
  assert.ok(!lingered, `the process lived on for ${LINGER_MS} ms after the story was over`);
  assert.equal(code, 0, `the story ended with ${signal ?? code}:\n${stderr}${stdout}`);
  assert.ok(stdout.includes(DONE), `the process ended before the story did:\n${stderr}`);
  const answer = stdout.slice(0, stdout.indexOf(DONE));
  return answer === "" ? undefined : JSON.parse(answer);
}

const packed = { lockgate: "lockgate", testing: "lockgate/testing" };

// The kit imports the package too, and must import the same copy as the story.
async function placeKit({ lockgate }) {
  const source = fs.readFileSync(inRoot("tests/npm/support/kit.mjs"), "utf8");
  const kit = source.replace('from "lockgate"', `from ${JSON.stringify(lockgate)}`);
  fs.writeFileSync(path.join(await project(), "kit.mjs"), kit);
  for (const name of ["provider.mjs", "memory-limit.mjs"]) fs.copyFileSync(inRoot("tests/npm/support", name), path.join(await project(), name));
}

const programOf = (story, given, { lockgate, testing }) => `
import assert from "node:assert/strict";
import * as lockgate from ${JSON.stringify(lockgate)};
import * as testing from ${JSON.stringify(testing)};
import * as kit from "./kit.mjs";
import * as provider from "./provider.mjs";
process.on("unhandledRejection", (reason) => {
  console.error("a rejection was left unhandled:", reason);
  process.exit(1);
});
const story = ${story};
const answer = await story({ ...lockgate, ...testing, ...kit, ...provider, assert }, ${JSON.stringify(given)});
process.stdout.write((JSON.stringify(answer) ?? "") + ${JSON.stringify(DONE)});
`;

/** A test that runs a story. */
export function story(name, work, given) {
  test(name, () => tell(work, given));
}

/** Runs a program of this machine and returns its output. */
export async function printed(command, args, options = {}) {
  const { code, output, stdout } = await capture(command, args, options);
  assert.equal(code, 0, output);
  return stdout;
}
