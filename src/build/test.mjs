// Runs all tests, stage by stage: `npm test [-- stage …]`.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { build } from "./build.mjs";
import { check } from "./check.mjs";
import { countCargo } from "./testing/counts.mjs";
import { freshMatrix, installPackagingTools, printMatrix } from "./testing/packaging.mjs";
import { longRustTests } from "./testing/rust-tests.mjs";
import { explain, inRoot, main, must, npmCommand, problem, seconds, step, tee } from "./run.mjs";
import { prepare } from "./setup/setup.mjs";
import { buildWww } from "./web/www.mjs";

const isCi = process.env.CI === "true";

// Each stage returns how many tests passed, failed and were skipped. If a stage throws, that counts as one failure.
function allStages() {
  const long = longRustTests().map((name) => ({
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
    { name: "hosts", run: () => hostTests(".test.mjs") },
    { name: "ui", run: uiTests },
    { name: "packaging", run: packagingTests },
    { name: "long", run: longStage, onlyWhenAsked: true },
  ];
}

// Tests that take too long for every day: the *.long.mjs files, and fuzz targets with fifty times as many inputs.
async function longStage() {
  const total = await packageTests(".long.mjs");
  const inputs = { INPUTS: "1000000" };
  add(total, await cargoTests([["--profile", "fast", "--test", "fuzz"]], inputs));
  add(total, await nodeTests("tests/ui", inputs, "-fuzz.test.mjs"));
  add(total, await hostTests(".long.mjs"));
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

// If a program fails without a failed test, it did not compile or it crashed. That counts as one failure.
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

// The flags come from tests/browser/webdriver.json. The path of the browser depends on the machine.
function webdriverFor(chromium) {
  const settings = JSON.parse(fs.readFileSync(inRoot("tests/browser/webdriver.json"), "utf8"));
  settings["goog:chromeOptions"].binary = chromium;
  const file = inRoot("target/webdriver.json");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(settings, null, 2));
  return file;
}

async function packageTests(ending) {
  const tools = await prepare(["chromium", "servers", "modelServer"], { quiet: true });
  const { serversMissing, modelServerMissing, modelServerBroken } = tools;
  for (const why of [serversMissing, modelServerMissing, modelServerBroken]) if (why) console.log(why);
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
  const counts = await nodeTests("tests/npm", env, ending);
  // A machine without Python runs the other tests. One on which pip installs something else than the server has a fault.
  if (isCi && modelServerBroken) counts.failed += 1;
  return counts;
}

async function chromiumTests() {
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  if (!chromium) return skipStage(chromiumMissing);
  await build();
  return nodeTests("tests/chromium", { LOCKGATE_TARBALL: await packOnce(), CHROMIUM: chromium });
}

// Tests in every browser and in the runtimes that npm packages bring, with a table of the results. A missing browser skips its tests, which says why.
async function hostTests(ending) {
  const tools = await prepare(["chromium", "browsers"], { quiet: true });
  for (const why of [tools.chromiumMissing, tools.firefoxMissing, tools.webkitMissing]) if (why) console.log(why);
  await build();
  const programs = {
    CHROMIUM: tools.chromium,
    FIREFOX: tools.firefox,
    WEBKIT_DRIVER: tools.webkitDriver,
    WEBKIT_BROWSER: tools.webkitBrowser,
    XVFB: tools.xvfb,
  };
  const found = Object.fromEntries(Object.entries(programs).filter(([, program]) => program));
  const matrix = freshMatrix();
  const env = {
    LOCKGATE_TARBALL: await packOnce(),
    LOCKGATE_PACKAGING: await installPackagingTools(),
    LOCKGATE_MATRIX: matrix,
    ...found,
  };
  const counts = await nodeTests("tests/hosts", env, ending);
  printMatrix(matrix);
  return counts;
}

// Tests the packed package in empty projects with bundlers and Node versions, and prints a table of the results.
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
    must(npm, args, { show, advice: "npm could not pack the package: read the error above." }),
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
  const names = fs.existsSync(inRoot(folder)) ? fs.readdirSync(inRoot(folder), { recursive: true }) : [];
  const files = names
    .filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
    .sort()
    .map((name) => path.join(folder, name));
  if (files.length === 0)
    throw problem(`${folder} has no files *${ending}, so there is nothing to run.`);
  const countsFile = inRoot("target/test-counts.json");
  fs.mkdirSync(path.dirname(countsFile), { recursive: true });
  fs.rmSync(countsFile, { force: true });
  const reporters = [
    ...["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ...["--test-reporter=./src/build/testing/counts.mjs", `--test-reporter-destination=${countsFile}`],
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
    console.log(`${name} ran no test; this counts as a failure`);
    return { passed, failed: 1, skipped };
  }
  if (!isCi || skipped === 0) return { passed, failed, skipped };
  console.log(`${name} skipped ${skipped} tests; with CI=true they count as failed`);
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
  if (unknown) throw problem(`${unknown} is not a stage: choose from ${known.join(", ")}.`);
  if (names.length === 0) return stages.filter(({ onlyWhenAsked }) => !onlyWhenAsked);
  return stages.filter(({ name }) => names.includes(name));
}

await main(import.meta.url, async (names) => {
  const stages = choose(names);
  // Without Rust no stage can run, and one error is clearer than six failed stages.
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
