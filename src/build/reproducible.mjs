// Compiler flags for the wasm: what names its parts, and what keeps this machine's folders out of it, so that the same
// source gives the same bytes anywhere.
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { capture, problem } from "./run.mjs";

/** The variable for cargo, with the flags of the environment first; `sysroot` is the compiler's. */
export async function reproducibleEnv(sysroot) {
  const cargoHome = process.env.CARGO_HOME || path.join(os.homedir(), ".cargo");
  const remap = {
    [path.join(cargoHome, "registry/src")]: "/crates",
    // Where its source is installed the compiler names that; elsewhere it names this.
    [path.join(sysroot, "lib/rustlib/src/rust")]: `/rustc/${await commitOf()}`,
  };
  const { CARGO_ENCODED_RUSTFLAGS: encoded, RUSTFLAGS: plain = "" } = process.env;
  const given = encoded?.split(SEPARATOR) ?? plain.split(/\s+/);
  const flags = Object.entries(remap).map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
  return { CARGO_ENCODED_RUSTFLAGS: [...given, ...flags, ...forSplitting].filter(Boolean).join(SEPARATOR) };
}

// Names that tell which instance of a generic function it is, and notes of the linker about what points to what.
const forSplitting = ["-Csymbol-mangling-version=v0", "-Clink-arg=--emit-relocs"];

const SEPARATOR = "\x1f";

async function commitOf() {
  const { stdout, output } = await capture("rustc", ["-vV"]);
  const commit = /^commit-hash: (\w+)$/m.exec(stdout)?.[1];
  if (commit !== undefined) return commit;
  throw problem("rustc does not say which it is: see to the installation of Rust.", output);
}
