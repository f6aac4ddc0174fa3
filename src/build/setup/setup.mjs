// Finds the tools that the commands need, and installs those that are missing.
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { prepareBrowsers } from "./browsers.mjs";
import { prepareChromium } from "./chromium.mjs";
import { prepareModelServer } from "./model-server.mjs";
import { toolsFolder } from "./packages.mjs";
import { prepareServers } from "./servers.mjs";
import {
  capture,
  exe,
  inRoot,
  isRunnable,
  main,
  must,
  npmCommand,
  problem,
  root,
  step,
  which,
} from "../run.mjs";

// In the order of preparation: a tool comes after the tools that it needs.
const preparers = {
  rust: prepareRust,
  wasm: prepareWasm,
  npm: prepareNpm,
  binaryen: prepareBinaryen,
  bindgen: prepareBindgen,
  chromium: prepareChromium,
  browsers: prepareBrowsers,
  servers: prepareServers,
  modelServer: prepareModelServer,
};
const alsoNeeds = { wasm: ["rust"], bindgen: ["rust"], binaryen: ["npm"] };
const prepared = new Map();

/**
 * Installs the named tools (`npm`, `rust`, `wasm`, `bindgen`, `binaryen`, `chromium`, `browsers`, `servers`, `modelServer`) if they are
 * missing, and returns the paths of their programs. Installations are always reported; with `quiet`, tools that were there are not.
 * Browsers and servers may stay missing: then their path is null, and `chromiumMissing`, `firefoxMissing`, `webkitMissing`,
 * `serversMissing` or `modelServerMissing` says why, and what to do.
 */
export async function prepare(needs, { quiet = false } = {}) {
  const wanted = new Set(needs.flatMap((need) => [need, ...(alsoNeeds[need] ?? [])]));
  const unknown = [...wanted].find((need) => !(need in preparers));
  if (unknown) throw new Error(`there is no tool named ${unknown}`);
  const paths = {};
  for (const need of Object.keys(preparers).filter((name) => wanted.has(name))) {
    if (!prepared.has(need)) prepared.set(need, preparers[need](paths));
    Object.assign(paths, await prepared.get(need));
    if (!quiet) console.log(`${need}: ready`);
  }
  return paths;
}

/** The version of wasm-bindgen that Cargo.toml pins. The CLI must have the same version. */
export function bindgenVersion(cargoToml = fs.readFileSync(inRoot("Cargo.toml"), "utf8")) {
  const pin = /^wasm-bindgen\s*=\s*(?:\{[^}]*\bversion\s*=\s*)?"=([\w.+-]+)"/m.exec(cargoToml);
  if (pin) return pin[1];
  throw problem(
    'Cargo.toml pins no wasm-bindgen: write `wasm-bindgen = "=<version>"` there, with the equals sign.',
  );
}

async function prepareRust() {
  if (!which("cargo")) lookInCargoHome();
  if (!which("cargo") || !which("rustc")) {
    throw problem(
      "Rust is missing: install it with `curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y`, then run this again.",
    );
  }
  const sysroot = (await findSysroot()) ?? (await installToolchain());
  const bin = (name) => path.join(sysroot, "bin", name + exe);
  if (!isRunnable(bin("rustfmt")) || !isRunnable(bin("cargo-clippy"))) {
    await rustup("rustfmt and clippy", ["component", "add", "rustfmt", "clippy"]);
  }
  return { cargo: which("cargo"), sysroot };
}

// Because of rust-toolchain.toml, this command makes most versions of rustup install the toolchain.
async function findSysroot() {
  const ask = (show) => capture("rustc", ["--print", "sysroot"], { show });
  const { code, stdout } = await step("Rust toolchain", ask, { silentUnderMs: 1000 });
  return code === 0 ? stdout.trim() : null;
}

async function installToolchain() {
  await rustup("the toolchain of rust-toolchain.toml", ["toolchain", "install"]);
  const sysroot = await findSysroot();
  if (sysroot) return sysroot;
  throw problem("rustc does not start: run `rustc --version` here and read its error.");
}

// The installer puts cargo into this folder, which is not in the PATH of shells that were opened before.
function lookInCargoHome() {
  const bin = path.join(process.env.CARGO_HOME ?? path.join(os.homedir(), ".cargo"), "bin");
  if (isRunnable(path.join(bin, `cargo${exe}`)))
    process.env.PATH = `${bin}${path.delimiter}${process.env.PATH ?? ""}`;
}

async function rustup(what, args) {
  if (!which("rustup")) {
    throw problem(
      `${what} must be added with rustup, which is missing: install Rust from https://rustup.rs, then run this again.`,
    );
  }
  const advice = `rustup could not add ${what}: run \`rustup ${args.join(" ")}\` here and read its error.`;
  await step(`Adding ${what} with rustup`, (show) => must("rustup", args, { show, advice }));
}

async function prepareWasm({ sysroot }) {
  const target = "wasm32-unknown-unknown";
  const folder = path.join(sysroot, "lib", "rustlib", target, "lib");
  if (!fs.existsSync(folder)) await rustup(`the target ${target}`, ["target", "add", target]);
  return { wasmTarget: target };
}

async function prepareNpm() {
  const stamp = inRoot("node_modules", ".lockgate-lock");
  const wanted = createHash("sha256")
    .update(fs.readFileSync(inRoot("package-lock.json")))
    .digest("hex");
  if (readIfThere(stamp) !== wanted) {
    await step("Installing the npm packages of package-lock.json", installPackages);
    fs.writeFileSync(stamp, wanted);
  }
  return {
    tsc: inRoot("node_modules/typescript/bin/tsc"),
    vite: inRoot("node_modules/vite/bin/vite.js"),
  };
}

// Without install scripts: the binaries of esbuild and workerd come as packages and need no script.
async function installPackages(show) {
  const [npm, ...first] = npmCommand();
  await must(npm, [...first, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    show,
    advice:
      "npm could not install the packages: if it says that package.json and package-lock.json differ, run `npm install`; else check the network and run this again.",
  });
}

function readIfThere(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : null;
}

async function prepareBinaryen() {
  const wasmOpt = inRoot("node_modules/binaryen/bin/wasm-opt");
  if (fs.existsSync(wasmOpt)) return { wasmOpt };
  throw problem("node_modules has no binaryen: delete node_modules and run this again.");
}

async function prepareBindgen() {
  const version = bindgenVersion();
  const folder = path.join(toolsFolder(), `wasm-bindgen-${version}`);
  const own = pair(path.join(folder, "bin"));
  if (await areOfVersion(own, version)) return own;
  const onPath = which("wasm-bindgen");
  if (onPath && (await areOfVersion(pair(path.dirname(onPath)), version)))
    return pair(path.dirname(onPath));
  await installBindgen(version, folder);
  return own;
}

function pair(bin) {
  return {
    bindgen: path.join(bin, `wasm-bindgen${exe}`),
    bindgenTestRunner: path.join(bin, `wasm-bindgen-test-runner${exe}`),
  };
}

async function areOfVersion({ bindgen, bindgenTestRunner }, version) {
  if (!isRunnable(bindgen) || !isRunnable(bindgenTestRunner)) return false;
  const { stdout } = await capture(bindgen, ["--version"]);
  return stdout.trim().split(" ")[1] === version;
}

async function installBindgen(version, folder) {
  const args = [
    "install",
    "wasm-bindgen-cli",
    "--version",
    `=${version}`,
    "--root",
    folder,
    "--force",
  ];
  const title = `Installing wasm-bindgen ${version} (about four minutes, once)`;
  await step(title, async (show) => {
    const locked = await capture("cargo", [...args, "--locked"], { show });
    if (locked.code === 0) return;
    console.log(
      "wasm-bindgen-cli cannot be installed with its lock file here; installing with the newest compatible crates",
    );
    const advice = `cargo could not install wasm-bindgen: run \`cargo ${args.join(" ")}\` and read its error.`;
    await must("cargo", args, { show, advice });
  });
}

await main(import.meta.url, async () => {
  const started = Date.now();
  console.log(await prepare(Object.keys(preparers), { quiet: true }));
  console.log(`all tools for ${root} are ready (${Date.now() - started} ms)`);
});
