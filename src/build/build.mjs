// Builds the package into `dist/`: the wasm, its JavaScript glue and the compiled TypeScript.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { isCurrent, stampAs } from "./package/current.mjs";
import { updateGlueTypes } from "./package/glue-types.mjs";
import { glueFactory } from "./package/glue.mjs";
import { reproducibleEnv } from "./package/reproducible.mjs";
import { bundleOneFile } from "./package/one-file.mjs";
import { inRoot, main, must, problem, step } from "./run.mjs";
import { inlined, sealOf, sealed } from "./package/seal.mjs";
import { prepare } from "./setup/setup.mjs";
import { withShortNames } from "./wasm/names.mjs";
import { readObjects } from "./wasm/objects.mjs";
import { readProfile } from "./wasm/profile.mjs";
import { withData, withoutSections } from "./wasm/sections.mjs";
import { split } from "./wasm/split.mjs";

// The testing build has the cargo feature `testing`, which lets tests make the engine trap.
const variants = {
  package: { out: inRoot("dist"), glue: inRoot("target/glue"), features: [] },
  testing: {
    out: inRoot("target/testing-dist"),
    glue: inRoot("target/glue-testing"),
    features: ["--features", "testing"],
  },
};

// Rust and JavaScript share this list. Rust includes the file. JavaScript gets a module, because not every host and bundler can
// import JSON.
const storeRules = inRoot("src/store/backend/rules.json");

/** Builds the parts that are out of date, or everything with `force`. Returns the folder of the build. */
export async function build({ testing = false, force = false } = {}) {
  const tools = await prepare(["npm", "wasm", "bindgen", "binaryen"], { quiet: true });
  const variant = testing ? variants.testing : variants.package;
  fs.mkdirSync(variant.out, { recursive: true });
  const name = path.relative(inRoot(), variant.out);
  if (!force && isWasmCurrent(variant))
    console.log(`${name}: core.wasm and core.js are up to date`);
  else await buildWasm(tools, variant);
  if (!force && isTypeScriptCurrent(variant))
    console.log(`${name}: the compiled TypeScript is up to date`);
  else await buildTypeScript(tools, variant);
  if (!testing) await bundleOneFile(variant.out);
  return variant.out;
}

/** The folder with the output of wasm-bindgen for the package: the wasm and its glue. */
export const glueOf = () => variants.package.glue;

/** Builds only the TypeScript part of `dist/`, which is enough to check other projects against its types. */
export async function buildTypes() {
  const { tsc } = await prepare(["npm"], { quiet: true });
  fs.mkdirSync(variants.package.out, { recursive: true });
  if (!isTypeScriptCurrent(variants.package)) await buildTypeScript({ tsc }, variants.package);
}

// The files that are made from Rust.
const CORE = ["core.wasm", "page.wasm", "rest.wasm", "core.js", "inline-wasm.js"];
const coreFiles = (out) => CORE.map((name) => path.join(out, name));

const isRustInput = (file) =>
  !file.startsWith(inRoot("src/npm")) && !file.startsWith(inRoot("src/build"));

function isWasmCurrent({ out }) {
  const manifests = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    ".cargo",
    "package-lock.json",
  ];
  const tools = ["build.mjs", "package", "wasm"];
  const inputs = [...manifests, "src", ...tools.map((name) => `src/build/${name}`)].map((file) => inRoot(file));
  const isInput = (file) => isRustInput(file) || inputs.some((input) => input !== inRoot("src") && file.startsWith(input));
  return isCurrent(coreFiles(out), inputs, isInput);
}

function isTypeScriptCurrent({ out }) {
  const inputs = [inRoot("src/npm"), storeRules, inRoot("package-lock.json")];
  return isCurrent([path.join(out, "index.js"), path.join(out, "index.d.ts")], inputs);
}

async function buildWasm(tools, variant) {
  const started = Date.now();
  // Old files are removed first: if a step fails, the next build starts again.
  coreFiles(variant.out).forEach((file) => fs.rmSync(file, { force: true }));
  const raw = await compileRust(tools, variant);
  await bindJs(tools, variant, raw);
  await shrinkWasm(tools, variant, "core", path.join(variant.glue, "core_bg.wasm"));
  await splitWasm(tools, variant, raw);
  writeSealed(variant);
  await checkModule(variant);
  stampAs(started, coreFiles(variant.out));
}

async function compileRust({ cargo, wasmTarget, sysroot }, { features }) {
  const env = await reproducibleEnv(sysroot);
  const args = ["build", "--release", "--locked", "--lib", "--target", wasmTarget, ...features];
  const advice = "The Rust code does not compile: correct the errors above.";
  await step(["cargo build", ...features].join(" "), (show) => must(cargo, args, { show, advice, env }));
  const target = path.resolve(inRoot(), process.env.CARGO_TARGET_DIR || "target");
  const wasm = path.join(target, wasmTarget, "release", "lockgate.wasm");
  if (fs.existsSync(wasm)) return wasm;
  throw problem(`cargo did not make ${wasm}: [lib] in Cargo.toml must have the crate type cdylib.`);
}

async function bindJs({ bindgen }, { glue, features }, raw) {
  fs.rmSync(glue, { recursive: true, force: true });
  const args = [
    "--target",
    "web",
    "--omit-default-module-path",
    "--out-name",
    "core",
    "--out-dir",
    glue,
    raw,
  ];
  const advice =
    "wasm-bindgen failed: if the error is about versions, the crate and the CLI differ; see the pin in Cargo.toml.";
  await step("wasm-bindgen", (show) => must(bindgen, args, { show, advice }));
  // The testing build exports a few functions more.
  if (features.length === 0 && updateGlueTypes(glue)) console.log("src/npm/glue.d.ts: written again, because what Rust exports or calls has changed");
  // The linker's sections describe the module before wasm-bindgen changed it, so they are removed.
  const bound = path.join(glue, "core_bg.wasm");
  const isNote = (name) => name === "linking" || name.startsWith("reloc.");
  const script = path.join(glue, "core.js");
  const short = withShortNames(withoutSections(fs.readFileSync(bound), isNote), fs.readFileSync(script, "utf8"));
  fs.writeFileSync(bound, short.wasm);
  fs.writeFileSync(script, short.glue);
}

// No feature flags: wasm-opt reads the features from the module, and flags make it guess wrongly. Functions with one caller are
// not inlined: inlining makes the file smaller, but 5 % larger once compressed.
async function shrinkWasm({ wasmOpt }, { out }, name, input) {
  const flags = ["-Oz", "--one-caller-inline-max-function-size=0"];
  const args = [wasmOpt, ...flags, input, "-o", path.join(out, `${name}.wasm`)];
  const advice = 'wasm-opt failed: `strip` in the release profile must be "debuginfo", never true.';
  await step(`wasm-opt ${name}.wasm`, (show) => must(process.execPath, args, { show, advice }));
}

/** Splits the module into the two files that a page loads one after the other. */
async function splitWasm(tools, variant, raw) {
  const { default: binaryen } = await import("binaryen");
  const isHot = readProfile();
  const parts = await step("splitting the module", async () =>
    split(binaryen, fs.readFileSync(path.join(variant.glue, "core_bg.wasm")), isHot, readObjects(fs.readFileSync(raw))),
  );
  for (const [name, { wasm, data }] of Object.entries(parts)) {
    const part = path.join(variant.glue, `${name}.wasm`);
    fs.writeFileSync(part, wasm);
    await shrinkWasm(tools, variant, name, part);
    const shrunk = path.join(variant.out, `${name}.wasm`);
    fs.writeFileSync(shrunk, withData(fs.readFileSync(shrunk), data));
  }
}

function writeSealed({ glue, out }) {
  const source = fs.readFileSync(path.join(glue, "core.js"), "utf8");
  const plain = fs.readFileSync(path.join(out, "core.wasm"));
  const { version } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const seal = sealOf(version, plain, source);
  const wasm = sealed(plain, seal);
  fs.writeFileSync(path.join(out, "core.js"), glueFactory(source, seal));
  fs.writeFileSync(path.join(out, "core.wasm"), wasm);
  for (const part of ["page.wasm", "rest.wasm"].map((name) => path.join(out, name)))
    fs.writeFileSync(part, sealed(fs.readFileSync(part), seal));
  fs.writeFileSync(path.join(out, "inline-wasm.js"), inlined(wasm));
}

// If wasm-opt breaks a module, the module fails only when it starts. So the build starts it, with two instances.
async function checkModule({ out }) {
  await step("starting the module", async () => {
    const { instantiate } = await import(pathToFileURL(path.join(out, "core.js")).href);
    const compiled = (name) => WebAssembly.compile(fs.readFileSync(path.join(out, name)));
    const [module, page, rest] = await Promise.all(["core.wasm", "page.wasm", "rest.wasm"].map(compiled));
    const fresh = () => instantiate((exports) => exports, () => {});
    const memories = [1, 2].map(() => fresh().initSync({ module }).memory);
    if (memories[0] === memories[1])
      throw problem("Two instances share their memory: src/build/package/glue.mjs did not make a factory.");
    const twoParts = fresh();
    twoParts.initSync({ module: page });
    twoParts.complete(rest);
  });
}

async function buildTypeScript({ tsc }, { out }) {
  const started = Date.now();
  removeCompiled(out);
  const args = [tsc, "-p", inRoot("src/npm/tsconfig.json"), "--outDir", out];
  const advice = "The TypeScript does not compile: correct the errors above.";
  await step("tsc", (show) => must(process.execPath, args, { show, advice }));
  const written = [path.join(out, "index.js"), path.join(out, "index.d.ts")];
  const rules = JSON.parse(fs.readFileSync(storeRules, "utf8"));
  fs.writeFileSync(path.join(out, "testing/rule-list.js"), `export const RULES = ${JSON.stringify(rules)};\n`);
  if (!written.every((file) => fs.existsSync(file)))
    throw problem("src/npm/index.ts is missing: it is the main entry point of the package.");
  stampAs(started, written);
}

// tsc never deletes files, and a module that was removed from src/npm must not stay in the package.
function removeCompiled(out) {
  for (const name of fs.readdirSync(out)) {
    if (!CORE.includes(name))
      fs.rmSync(path.join(out, name), { recursive: true });
  }
}

await main(import.meta.url, async (args) => {
  const unknown = args.find((arg) => arg !== "--testing" && arg !== "--force");
  if (unknown)
    throw problem(`${unknown} is unknown: use \`npm run build -- [--testing] [--force]\`.`);
  await build({ testing: args.includes("--testing"), force: args.includes("--force") });
});
