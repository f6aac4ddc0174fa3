// The fast checks before every commit: format, lints, architecture, contract, glue.d.ts, types and the API report.
import fs from "node:fs";
import process from "node:process";
import { buildTypes } from "./build.mjs";
import { staleGlueTypes } from "./package/glue-types.mjs";
import { countCargo } from "./testing/counts.mjs";
import { longRustTests } from "./testing/rust-tests.mjs";
import { capture, explain, inRoot, main, problem, seconds } from "./run.mjs";
import { prepare } from "./setup/setup.mjs";

const lints = ["--", "-D", "warnings"];

/** Runs every check, prints one line per check, and returns how many passed and failed. */
export async function check() {
  const tools = await prepare(["npm", "rust", "wasm", "bindgen"], { quiet: true });
  const border = { name: "src/npm/glue.d.ts", complaint: () => staleGlueTypes(tools) };
  const checks = [...rustChecks(tools), border, ...typeChecks(tools), publicSurface];
  let failed = 0;
  for (const each of checks) {
    const started = Date.now();
    const complaint = await runCheck(each).catch((error) => error);
    console.log(`${complaint ? "FAILED" : "ok    "} ${each.name} (${seconds(started)} s)`);
    if (!complaint) continue;
    explain(complaint);
    failed += 1;
  }
  return { passed: checks.length - failed, failed, skipped: 0 };
}

// Returns what is wrong, or null.
async function runCheck({ command, advice, before, complaint, isGood = () => true }) {
  await before?.();
  if (complaint) return complaint();
  const { code, output } = await capture(command[0], command.slice(1));
  return code === 0 && isGood(output) ? null : problem(advice, output);
}

function rustChecks({ cargo, wasmTarget }) {
  const correct = "Correct the errors above.";
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
    {
      name: "long tests compile",
      command: [cargo, "check", ...longRustTests().flatMap((name) => ["--test", name])],
      advice: correct,
    },
    rustStories("architecture", cargo),
    rustStories("contract", cargo),
  ];
}

// cargo succeeds if the filter matches no test, so the tests are counted.
function rustStories(name, cargo) {
  return {
    name,
    command: [cargo, "test", "--test", "native", name],
    isGood: (output) => countCargo(output).passed > 0,
    advice: `The tests in tests/native with \`${name}\` in their name must pass, and there must be at least one.`,
  };
}

// The web UI uses the package like a user, through the declarations in `dist/`, so these are built first.
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
      advice: "Correct the type errors above.",
    }));
}

// Loaded late, because the report needs the compiler, which `prepare` installs.
const publicSurface = {
  name: "API report",
  before: buildTypes,
  complaint: async () => (await import("./api.mjs")).staleReport(),
};

await main(import.meta.url, async () => {
  const { passed, failed } = await check();
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});
