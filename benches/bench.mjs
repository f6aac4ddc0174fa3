// Runs every measure for every engine and round, prints the table, and writes the report.
import { spawn } from "node:child_process";
import os from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { engines } from "./engines/index.mjs";
import { measures } from "./measures/index.mjs";
import { Results } from "./results.mjs";
import { printTable, writeReport } from "./report.mjs";

const usage = `npm run bench [-- --quick] [--only ${Object.keys(measures).join(",")}] [--engines ${Object.keys(engines).join(",")}]`;

/** No measure of one engine takes this long, unless it hangs. */
const PATIENCE_MS = 300_000;

const { quick, only, engines: chosen } = readArguments();
const started = Date.now();
const [load] = os.loadavg();
const results = new Results();
for (const [what, { rounds, settings, names }] of plan()) {
  for (let round = 0; round < rounds; round++) {
    // The order rotates from round to round, so that no engine always runs after the same other engine.
    for (const name of turned(names, round)) await run(what, name, { ...settings, round });
  }
}
printTable(results, quick ? "quick" : "full");
if (!quick && !only && !chosen) writeReport(results, { seconds: (Date.now() - started) / 1_000, load });
console.log(`${Math.round((Date.now() - started) / 1_000)} s; ${results.failures.length} failed`);
process.exitCode = results.failures.length > 0 ? 1 : 0;

function readArguments() {
  const options = { quick: { type: "boolean" }, only: { type: "string" }, engines: { type: "string" } };
  try {
    const { values } = parseArgs({ options });
    const of = (list, known) => {
      const names = list?.split(",");
      const unknown = names?.find((name) => !(name in known));
      if (unknown !== undefined) throw new Error(`there is no ${unknown}`);
      return names;
    };
    return { quick: values.quick ?? false, only: of(values.only, measures), engines: of(values.engines, engines) };
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
}

function plan() {
  return Object.entries(measures)
    .filter(([what]) => only?.includes(what) ?? true)
    .map(([what, measure]) => {
      const { rounds, engines: asked = measure.engines, ...settings } = quick ? measure.quick : measure.full;
      const names = asked.filter((name) => name === "lockgate" || (chosen?.includes(name) ?? true));
      return [what, { rounds, settings, names }];
    });
}

function turned(names, by) {
  return names.map((_, at) => names[(at + by) % names.length]);
}

async function run(what, name, settings) {
  const start = Date.now();
  const { found, problem } = await inOwnProcess(what, name, settings);
  if (problem) results.fail(what, name, problem);
  else results.add(name, found);
  console.log(`${what} ${name} (${((Date.now() - start) / 1_000).toFixed(1)} s)${problem ? `: failed: ${problem}` : ""}`);
}

/** The result of a measure of an engine, or its error. */
function inOwnProcess(what, name, settings) {
  const file = fileURLToPath(new URL("measure.mjs", import.meta.url));
  const child = spawn(process.execPath, ["--expose-gc", "--no-warnings", file, what, name, JSON.stringify(settings)], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let found;
  let problem;
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("@@")) found = JSON.parse(line.slice(2));
    if (line.startsWith("@!")) problem = line.slice(2);
  });
  // SIGTERM first, so that the process can end the browsers and Workers that it has started.
  const limit = setTimeout(() => {
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), 5_000).unref();
  }, PATIENCE_MS);
  return new Promise((resolve) => {
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      resolve(code === 0 && found ? { found } : { problem: problem ?? `it ended with ${signal ?? code}` });
    });
  });
}
