// The test binaries of Cargo.toml that have a stage of their own.
import fs from "node:fs";
import { inRoot } from "../run.mjs";

/**
 * Every [[test]] of Cargo.toml besides `native` and `browser`. These tests take long, so they are built with the profile `fast`,
 * which optimises for speed. Cargo builds them only if they are named (`test = false`).
 */
export function longRustTests() {
  const manifest = fs.readFileSync(inRoot("Cargo.toml"), "utf8");
  const names = [...manifest.matchAll(/^\[\[test\]\]\s*\nname\s*=\s*"([^"]+)"/gm)].map((match) => match[1]);
  return names.filter((name) => name !== "native" && name !== "browser");
}
