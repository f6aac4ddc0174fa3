// Two builds of the same source, in two folders, are the same bytes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { inRoot, must } from "../../../src/build/run.mjs";

const sources = ["src", ".cargo", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "package.json", "package-lock.json"];

function copyInto(folder) {
  fs.mkdirSync(folder, { recursive: true });
  for (const name of sources) fs.cpSync(inRoot(name), path.join(folder, name), { recursive: true });
  // Cargo wants every target that the manifest names.
  fs.cpSync(inRoot("tests"), path.join(folder, "tests"), { recursive: true, filter: (file) => !file.includes("fixtures") && !file.includes("node_modules") });
  fs.symlinkSync(inRoot("node_modules"), path.join(folder, "node_modules"), "junction");
}

/** Builds the copy in a folder: the hash of each file that is packed, by its name. */
async function builtIn(folder) {
  const env = { CARGO_TARGET_DIR: path.join(folder, "target") };
  await must(process.execPath, ["src/build/build.mjs", "--force"], { cwd: folder, env, advice: "the copy could not be built" });
  const dist = path.join(folder, "dist");
  const files = fs.readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const named = files.map((entry) => path.relative(dist, path.join(entry.parentPath ?? entry.path, entry.name)));
  return Object.fromEntries(named.sort().map((name) => [name, createHash("sha256").update(fs.readFileSync(path.join(dist, name))).digest("hex")]));
}

test("P-04: two builds in two folders are the same, byte by byte, and name no folder of this machine", { timeout: 1_200_000 }, async (context) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-twice-"));
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const folders = [path.join(folder, "one"), path.join(folder, "another-folder/with-a-longer-name")];
  // Both are copied first, because the checkout may change during the builds.
  folders.forEach(copyInto);
  const [one, other] = [await builtIn(folders[0]), await builtIn(folders[1])];
  assert.ok(Object.keys(one).length > 100 && "core.wasm" in one && "inline-wasm.js" in one);
  assert.deepEqual(Object.keys(one), Object.keys(other));
  assert.deepEqual(Object.keys(one).filter((name) => one[name] !== other[name]), []);
  const wasm = fs.readFileSync(path.join(folder, "one/dist/core.wasm")).toString("latin1");
  for (const place of [folder, os.homedir(), "/.cargo/", "/.rustup/"]) assert.ok(!wasm.includes(place), `the wasm names ${place}`);
  console.log(`sha256 of core.wasm: ${one["core.wasm"]}`);
});
