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

/** Only the TypeScript part of `dist/`: enough for others to be checked against its types. */
export async function buildTypes() {
  const { tsc } = await prepare(["npm"], { quiet: true });
  fs.mkdirSync(variants.package.out, { recursive: true });
  if (!isTypeScriptCurrent(variants.package)) await buildTypeScript({ tsc }, variants.package);
}

// What is made of the Rust.
const CORE = ["core.wasm", "core.js", "inline-wasm.js"];
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
  const inputs = [...manifests, "src", ...["build", "glue", "reproducible", "seal"].map((name) => `src/build/${name}.mjs`)].map(
    (file) => inRoot(file),
  );
  const isInput = (file) => isOfRust(file) || inputs.includes(file);
  return isCurrent(coreFiles(out), inputs, isInput);
}

function isTypeScriptCurrent({ out }) {
  const inputs = [inRoot("src/npm"), rulesOfStores, inRoot("package-lock.json")];
  return isCurrent([path.join(out, "index.js"), path.join(out, "index.d.ts")], inputs);
}

async function buildWasm(tools, variant) {
  const started = Date.now();
  const raw = await compileRust(tools, variant);
  await bindJs(tools, variant, raw);
  await shrinkWasm(tools, variant);
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
}

// No feature flags: wasm-opt reads the features from the module, and guesses wrongly if told more. Functions with one
// caller stay apart: inlined they take fewer bytes, but a twentieth more once compressed.
async function shrinkWasm({ wasmOpt }, { glue, out }) {
  const flags = ["-Oz", "--one-caller-inline-max-function-size=0"];
  const args = [wasmOpt, ...flags, path.join(glue, "core_bg.wasm"), "-o", path.join(out, "core.wasm")];
  const advice = 'wasm-opt failed: `strip` in the release profile must be "debuginfo", never true.';
  await step("wasm-opt", (show) => must(process.execPath, args, { show, advice }));
}

function writeSealed({ glue, out }) {
  const source = fs.readFileSync(path.join(glue, "core.js"), "utf8");
  const plain = fs.readFileSync(path.join(out, "core.wasm"));
  const { version } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const seal = sealOf(version, plain, source);
  const wasm = sealed(plain, seal);
  fs.writeFileSync(path.join(out, "core.js"), glueFactory(source, seal));
  fs.writeFileSync(path.join(out, "core.wasm"), wasm);
  fs.writeFileSync(path.join(out, "inline-wasm.js"), inlined(wasm));
}

// A module that wasm-opt has spoilt fails only when it starts, so start it, twice, before anybody else does.
async function tryModule({ out }) {
  await step("starting the module", async () => {
    const { instantiate } = await import(pathToFileURL(path.join(out, "core.js")).href);
    const module = await WebAssembly.compile(fs.readFileSync(path.join(out, "core.wasm")));
    const memories = [1, 2].map(() => instantiate((exports) => exports).initSync({ module }).memory);
    if (memories[0] === memories[1])
      throw problem("Two instances share their memory: src/build/glue.mjs did not make a factory.");
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
