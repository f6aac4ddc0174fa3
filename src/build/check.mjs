// The fast look before every commit: format, lints, architecture, contract and types.
import fs from "node:fs";
import process from "node:process";
import { buildTypes } from "./build.mjs";
import { countCargo } from "./counts.mjs";
import { capture, explain, inRoot, main, problem, seconds } from "./run.mjs";
import { prepare } from "./setup.mjs";

const lints = ["--", "-D", "warnings"];

/** Runs every check, prints a line for each, and returns how many passed and failed. */
export async function check() {
  const tools = await prepare(["npm", "rust", "wasm"], { quiet: true });
  const checks = [...rustChecks(tools), ...typeChecks(tools)];
  let failed = 0;
  for (const one of checks) {
    const started = Date.now();
    const complaint = await runCheck(one).catch((error) => error);
    console.log(`${complaint ? "FAILED" : "ok    "} ${one.name} (${seconds(started)} s)`);
    if (!complaint) continue;
    explain(complaint);
    failed += 1;
  }
  return { passed: checks.length - failed, failed, skipped: 0 };
}

// Returns what is wrong, or null.
async function runCheck({ command, advice, before, isGood = () => true }) {
  await before?.();
  const { code, output } = await capture(command[0], command.slice(1));
  return code === 0 && isGood(output) ? null : problem(advice, output);
}

function rustChecks({ cargo, wasmTarget }) {
  const correct = "Correct what is named above.";
  return [
    { name: "format", command: [cargo, "fmt", "--check"], advice: "Run `cargo fmt`." },
    {
      name: "clippy, native",
      command: [cargo, "clippy", "--all-targets", ...lints],
      advice: correct,
    },
    {
      name: "clippy, wasm",
      command: [cargo, "clippy", "--lib", "--target", wasmTarget, ...lints],
      advice: correct,
    },
    rustStories("architecture", cargo),
    rustStories("contract", cargo),
  ];
}

// A filter that matches nothing succeeds, so the tests are counted.
function rustStories(name, cargo) {
  return {
    name,
    command: [cargo, "test", "--test", "native", name],
    isGood: (output) => countCargo(output).passed > 0,
    advice: `The tests of tests/native with \`${name}\` in their name must pass, and there must be some.`,
  };
}

// The web UI sees the package as a user does, by the declarations in `dist/`: those come first.
function typeChecks({ tsc }) {
  const projects = [
    { folder: "src/npm" },
    { folder: "tests/contract" },
    { folder: "www", before: buildTypes },
    { folder: "www/worker" },
  ];
  return projects
    .map((project) => ({ ...project, file: inRoot(project.folder, "tsconfig.json") }))
    .filter(({ file }) => fs.existsSync(file))
    .map(({ folder, file, before }) => ({
      name: `types of ${folder}`,
      before,
      command: [process.execPath, tsc, "--noEmit", "-p", file],
      advice: "Correct the types named above, or what they disagree with.",
    }));
}

await main(import.meta.url, async () => {
  const { passed, failed } = await check();
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});
