// Builds the package: Rust to wasm, its glue and the TypeScript around it, into `dist/`.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { isCurrent, stampAs } from "./current.mjs";
import { glueFactory } from "./glue.mjs";
import { reproducibleEnv } from "./reproducible.mjs";
import { inRoot, main, must, problem, step } from "./run.mjs";
import { inlined, sealOf, sealed } from "./seal.mjs";
import { prepare } from "./setup.mjs";
import { withShortNames } from "./wasm/names.mjs";
import { readObjects } from "./wasm/objects.mjs";
import { readProfile } from "./wasm/profile.mjs";
import { withData, withoutSections } from "./wasm/sections.mjs";
import { split } from "./wasm/split.mjs";

// The testing build has the cargo feature `testing`, with which tests make the engine trap.
const variants = {
  package: { out: inRoot("dist"), glue: inRoot("target/glue"), features: [] },
  testing: {
    out: inRoot("target/testing-dist"),
    glue: inRoot("target/glue-testing"),
    features: ["--features", "testing"],
  },
};

// One list for both languages: Rust includes it, and JavaScript gets it as a module, because not every host and bundler
// can import JSON.
const rulesOfStores = inRoot("src/store/rules.json");

/** Builds what is out of date, or everything with `force`; returns the folder built. */
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
  return variant.out;
}

/** Where the package's wasm is as wasm-bindgen leaves it, with its glue. */
export const glueOf = () => variants.package.glue;

/** Only the TypeScript part of `dist/`: enough for others to be checked against its types. */
export async function buildTypes() {
  const { tsc } = await prepare(["npm"], { quiet: true });
  fs.mkdirSync(variants.package.out, { recursive: true });
  if (!isTypeScriptCurrent(variants.package)) await buildTypeScript({ tsc }, variants.package);
}

// What is made of the Rust.
const CORE = ["core.wasm", "page.wasm", "rest.wasm", "core.js", "inline-wasm.js"];
const coreFiles = (out) => CORE.map((name) => path.join(out, name));

const isOfRust = (file) =>
  !file.startsWith(inRoot("src/npm")) && !file.startsWith(inRoot("src/build"));

function isWasmCurrent({ out }) {
  const manifests = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    ".cargo",
    "package-lock.json",
  ];
  const tools = ["build.mjs", "glue.mjs", "reproducible.mjs", "seal.mjs", "wasm"];
  const inputs = [...manifests, "src", ...tools.map((name) => `src/build/${name}`)].map((file) => inRoot(file));
  const isInput = (file) => isOfRust(file) || inputs.some((input) => input !== inRoot("src") && file.startsWith(input));
  return isCurrent(coreFiles(out), inputs, isInput);
}

function isTypeScriptCurrent({ out }) {
  const inputs = [inRoot("src/npm"), rulesOfStores, inRoot("package-lock.json")];
  return isCurrent([path.join(out, "index.js"), path.join(out, "index.d.ts")], inputs);
}

async function buildWasm(tools, variant) {
  const started = Date.now();
  // Until all of it is made and has been tried, nothing is up to date.
  coreFiles(variant.out).forEach((file) => fs.rmSync(file, { force: true }));
  const raw = await compileRust(tools, variant);
  await bindJs(tools, variant, raw);
  await shrinkWasm(tools, variant, "core", path.join(variant.glue, "core_bg.wasm"));
  await splitWasm(tools, variant, raw);
  writeSealed(variant);
  await tryModule(variant);
  stampAs(started, coreFiles(variant.out));
}

async function compileRust({ cargo, wasmTarget, sysroot }, { features }) {
  const env = await reproducibleEnv(sysroot);
  const args = ["build", "--release", "--locked", "--lib", "--target", wasmTarget, ...features];
  const advice = "The Rust code does not compile: correct what the compiler names above.";
  await step(["cargo build", ...features].join(" "), (show) => must(cargo, args, { show, advice, env }));
  const target = path.resolve(inRoot(), process.env.CARGO_TARGET_DIR || "target");
  const wasm = path.join(target, wasmTarget, "release", "lockgate.wasm");
  if (fs.existsSync(wasm)) return wasm;
  throw problem(`cargo made no ${wasm}: [lib] in Cargo.toml must have the crate type cdylib.`);
}

async function bindJs({ bindgen }, { glue }, raw) {
  fs.rmSync(glue, { recursive: true, force: true });
  const args = [
    "--target",
    "web",
    "--omit-default-module-path",
    "--no-typescript",
    "--out-name",
    "core",
    "--out-dir",
    glue,
    raw,
  ];
  const advice =
    "wasm-bindgen failed: if it speaks of versions, the crate and the CLI differ; see the pin in Cargo.toml.";
  await step("wasm-bindgen", (show) => must(bindgen, args, { show, advice }));
  // The linker's notes are of the module as it was before.
  const bound = path.join(glue, "core_bg.wasm");
  const isNote = (name) => name === "linking" || name.startsWith("reloc.");
  const script = path.join(glue, "core.js");
  const short = withShortNames(withoutSections(fs.readFileSync(bound), isNote), fs.readFileSync(script, "utf8"));
  fs.writeFileSync(bound, short.wasm);
  fs.writeFileSync(script, short.glue);
}

// No feature flags: wasm-opt reads the features from the module, and guesses wrongly if told more. Functions with one
// caller stay apart: inlined they take fewer bytes, but a twentieth more once compressed.
async function shrinkWasm({ wasmOpt }, { out }, name, input) {
  const flags = ["-Oz", "--one-caller-inline-max-function-size=0"];
  const args = [wasmOpt, ...flags, input, "-o", path.join(out, `${name}.wasm`)];
  const advice = 'wasm-opt failed: `strip` in the release profile must be "debuginfo", never true.';
  await step(`wasm-opt ${name}.wasm`, (show) => must(process.execPath, args, { show, advice }));
}

/** Makes of the one module the two that a page loads, one after the other. */
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

// A module that wasm-opt has spoilt fails only when it starts, so start it, twice, before anybody else does.
async function tryModule({ out }) {
  await step("starting the module", async () => {
    const { instantiate } = await import(pathToFileURL(path.join(out, "core.js")).href);
    const compiled = (name) => WebAssembly.compile(fs.readFileSync(path.join(out, name)));
    const [module, page, rest] = await Promise.all(["core.wasm", "page.wasm", "rest.wasm"].map(compiled));
    const fresh = () => instantiate((exports) => exports, () => {});
    const memories = [1, 2].map(() => fresh().initSync({ module }).memory);
    if (memories[0] === memories[1])
      throw problem("Two instances share their memory: src/build/glue.mjs did not make a factory.");
    const inParts = fresh();
    inParts.initSync({ module: page });
    inParts.complete(rest);
  });
}

async function buildTypeScript({ tsc }, { out }) {
  const started = Date.now();
  removeCompiled(out);
  const args = [tsc, "-p", inRoot("src/npm/tsconfig.json"), "--outDir", out];
  const advice = "The TypeScript does not compile: correct what the compiler names above.";
  await step("tsc", (show) => must(process.execPath, args, { show, advice }));
  const written = [path.join(out, "index.js"), path.join(out, "index.d.ts")];
  const rules = JSON.parse(fs.readFileSync(rulesOfStores, "utf8"));
  fs.writeFileSync(path.join(out, "rule-list.js"), `export const RULES = ${JSON.stringify(rules)};\n`);
  if (!written.every((file) => fs.existsSync(file)))
    throw problem("src/npm/index.ts is missing: it is the front of the package.");
  stampAs(started, written);
}

// tsc never deletes, and a module that is gone from src/npm must be gone from the package.
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
