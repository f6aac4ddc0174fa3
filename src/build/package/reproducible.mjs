// Compiler flags for the wasm. They keep the folders of this machine out of it, so that the same source gives the same bytes on
// every machine, and keep names that the splitting needs.
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { capture, problem } from "../run.mjs";

/** The environment variable with the flags for cargo, after the flags that the environment has already. `sysroot` is the compiler's. */
export async function reproducibleEnv(sysroot) {
  const cargoHome = process.env.CARGO_HOME || path.join(os.homedir(), ".cargo");
  const remap = {
    [path.join(cargoHome, "registry/src")]: "/crates",
    // If the source of the standard library is installed, the compiler writes its folder. Without it, the compiler writes this text.
    [path.join(sysroot, "lib/rustlib/src/rust")]: `/rustc/${await commitOf()}`,
  };
  const { CARGO_ENCODED_RUSTFLAGS: encoded, RUSTFLAGS: plain = "" } = process.env;
  const given = encoded?.split(SEPARATOR) ?? plain.split(/\s+/);
  const flags = Object.entries(remap).map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
  return { CARGO_ENCODED_RUSTFLAGS: [...given, ...flags, ...forSplitting].filter(Boolean).join(SEPARATOR) };
}

// Symbol names that tell instances of a generic function apart, and the linker's relocations.
const forSplitting = ["-Csymbol-mangling-version=v0", "-Clink-arg=--emit-relocs"];

const SEPARATOR = "\x1f";

async function commitOf() {
  const { stdout, output } = await capture("rustc", ["-vV"]);
  const commit = /^commit-hash: (\w+)$/m.exec(stdout)?.[1];
  if (commit !== undefined) return commit;
  throw problem("rustc does not report its commit: check the installation of Rust.", output);
}
