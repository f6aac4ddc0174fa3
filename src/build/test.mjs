// Runs every test there is, stage by stage: `npm test [-- stage …]`.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { build } from "./build.mjs";
import { check } from "./check.mjs";
import { countCargo } from "./counts.mjs";
import { freshMatrix, installPackagingTools, printMatrix } from "./packaging.mjs";
import { explain, inRoot, main, must, npmCommand, problem, seconds, step, tee } from "./run.mjs";
import { prepare } from "./setup.mjs";
import { buildWww } from "./www.mjs";

const isCi = process.env.CI === "true";

// Each returns how many passed, failed and were skipped; what it throws is one failure.
function allStages() {
  const long = longTests().map((name) => ({
    name,
    run: () => cargoTests([["--profile", "fast", "--test", name]]),
  }));
  return [
    { name: "check", run: check },
    { name: "native", run: () => cargoTests([["--test", "native"], ["--doc"]]) },
    ...long,
    { name: "browser", run: browserTests },
    { name: "package", run: () => packageTests(".test.mjs") },
    { name: "chromium", run: chromiumTests },
    { name: "ui", run: uiTests },
    { name: "packaging", run: packagingTests },
    { name: "long", run: longStage, onlyWhenAsked: true },
  ];
}

// Every [[test]] of Cargo.toml besides the two that have a stage of their own takes long, and is
// built with optimisation but not for size: the profile `fast`.
function longTests() {
  const manifest = fs.readFileSync(inRoot("Cargo.toml"), "utf8");
  const names = [...manifest.matchAll(/^\[\[test\]\]\s*\nname\s*=\s*"([^"]+)"/gm)].map(
    (match) => match[1],
  );
  return names.filter((name) => name !== "native" && name !== "browser");
}

// What takes too long for every day: stories of the package, and fifty times as many inputs for whatever reads them.
async function longStage() {
  const total = await packageTests(".long.mjs");
  const inputs = { INPUTS: "1000000" };
  add(total, await cargoTests([["--profile", "fast", "--test", "fuzz"]], inputs));
  add(total, await nodeTests("tests/ui", inputs, "-fuzz.test.mjs"));
  return total;
}

async function cargoTests(runs, env = {}) {
  const { cargo } = await prepare(["rust"], { quiet: true });
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const args of runs) {
    const { code, output } = await tee(cargo, ["test", "--no-fail-fast", ...args], { env });
    add(total, withExit(countCargo(output), code));
  }
  return total;
}

// A program that ended badly without naming a failed test did not compile, or crashed.
function withExit(counts, code) {
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

async function browserTests() {
  const tools = await prepare(["wasm", "bindgen", "chromium"], { quiet: true });
  if (tools.chromiumMissing) return skipStage(tools.chromiumMissing);
  return cargoTests([["--target", tools.wasmTarget, "--test", "browser"]], {
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER: tools.bindgenTestRunner,
    CHROMEDRIVER: tools.chromedriver,
    WASM_BINDGEN_TEST_WEBDRIVER_JSON: webdriverFor(tools.chromium),
    WASM_BINDGEN_TEST_TIMEOUT: "300",
    WASM_BINDGEN_TEST_DRIVER_TIMEOUT: "30",
  });
}

// The flags are those of tests/browser/webdriver.json; which browser it is differs by machine.
function webdriverFor(chromium) {
  const settings = JSON.parse(fs.readFileSync(inRoot("tests/browser/webdriver.json"), "utf8"));
  settings["goog:chromeOptions"].binary = chromium;
  const file = inRoot("target/webdriver.json");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(settings, null, 2));
  return file;
}

async function packageTests(ending) {
  const tools = await prepare(["chromium", "servers"], { quiet: true });
  if (tools.serversMissing) console.log(tools.serversMissing);
  await build();
  const testingDist = await build({ testing: true });
  const programs = {
    CHROMIUM: tools.chromium,
    REDIS_SERVER: tools.redisServer,
    MARIADBD: tools.mariadbd,
    MARIADB_INSTALL_DB: tools.mariadbInstallDb,
  };
  const env = {
    LOCKGATE_TARBALL: await packOnce(),
    LOCKGATE_TESTING_DIST: testingDist,
    ...Object.fromEntries(Object.entries(programs).filter(([, program]) => program)),
  };
  return nodeTests("tests/npm", env, ending);
}

async function chromiumTests() {
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  if (!chromium) return skipStage(chromiumMissing);
  await build();
  return nodeTests("tests/chromium", { LOCKGATE_TARBALL: await packOnce(), CHROMIUM: chromium });
}

// The packed package in empty projects, wherever its users are; ends with the table of where it works.
async function packagingTests() {
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  if (!chromium) return skipStage(chromiumMissing);
  await build();
  const matrix = freshMatrix();
  const env = {
    LOCKGATE_TARBALL: await packOnce(),
    LOCKGATE_PACKAGING: await installPackagingTools(),
    LOCKGATE_MATRIX: matrix,
    CHROMIUM: chromium,
  };
  const counts = await nodeTests("tests/packaging", env);
  printMatrix(matrix);
  return counts;
}

async function packOnce() {
  const folder = inRoot("target/pack");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const [npm, ...first] = npmCommand();
  const args = [...first, "pack", "--ignore-scripts", "--pack-destination", folder];
  await step("npm pack", (show) =>
    must(npm, args, { show, advice: "npm could not pack the package: see above." }),
  );
  return path.join(folder, fs.readdirSync(folder)[0]);
}

async function uiTests() {
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  if (!chromium) return skipStage(chromiumMissing);
  await build();
  return nodeTests("tests/ui", { CHROMIUM: chromium, LOCKGATE_WWW: await buildWww() });
}

async function nodeTests(folder, env, ending = ".test.mjs") {
  const names = fs.existsSync(inRoot(folder)) ? fs.readdirSync(inRoot(folder)) : [];
  const files = names
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => path.join(folder, name));
  if (files.length === 0)
    throw problem(`${folder} has no *${ending}: write some, there is nothing to run.`);
  const countsFile = inRoot("target/test-counts.json");
  fs.mkdirSync(path.dirname(countsFile), { recursive: true });
  fs.rmSync(countsFile, { force: true });
  const reporters = [
    ...["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ...["--test-reporter=./src/build/counts.mjs", `--test-reporter-destination=${countsFile}`],
  ];
  const { code } = await tee(process.execPath, ["--test", ...reporters, ...files], { env });
  const counted = fs.existsSync(countsFile) && fs.readFileSync(countsFile, "utf8");
  return withExit(counted ? JSON.parse(counted) : { passed: 0, failed: 0, skipped: 0 }, code);
}

function skipStage(reason) {
  console.log(`Skipped: ${reason}`);
  return { passed: 0, failed: 0, skipped: 1 };
}

function add(total, { passed, failed, skipped }) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}

async function runStage({ name, run }) {
  console.log(`\n── ${name} ──`);
  const started = Date.now();
  const counts = await run().catch((error) => {
    explain(error);
    return { passed: 0, failed: 1, skipped: 0 };
  });
  return { name, ...judge(name, counts), seconds: seconds(started) };
}

function judge(name, { passed, failed, skipped }) {
  if (passed + failed + skipped === 0) {
    console.log(`${name} ran no test, which counts as a failure`);
    return { passed, failed: 1, skipped };
  }
  if (!isCi || skipped === 0) return { passed, failed, skipped };
  console.log(`${name} skipped ${skipped}, which with CI=true counts as failed`);
  return { passed, failed: failed + skipped, skipped: 0 };
}

function printTable(rows) {
  const columns = ["name", "passed", "failed", "skipped", "seconds"];
  const line = (row) =>
    columns
      .map((key) => (key === "name" ? row[key].padEnd(14) : String(row[key]).padStart(9)))
      .join("");
  console.log(
    `\n${line(Object.fromEntries(columns.map((key) => [key, key === "name" ? "stage" : key])))}`,
  );
  for (const row of rows) console.log(line(row));
}

function choose(names) {
  const stages = allStages();
  const known = stages.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown) throw problem(`${unknown} is no stage: choose from ${known.join(", ")}.`);
  if (names.length === 0) return stages.filter(({ onlyWhenAsked }) => !onlyWhenAsked);
  return stages.filter(({ name }) => names.includes(name));
}

await main(import.meta.url, async (names) => {
  const stages = choose(names);
  // Without Rust nothing at all can run, and one sentence says it better than six failed stages.
  await prepare(["rust"], { quiet: true });
  const rows = [];
  for (const stage of stages) rows.push(await runStage(stage));
  printTable(rows);
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const row of rows) add(total, row);
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
  return total.failed > 0 ? 1 : 0;
});
