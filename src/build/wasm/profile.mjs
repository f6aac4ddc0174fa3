// Reads and writes page.profile: the functions that a page needs to start, recorded while a page ran.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { inRoot } from "../run.mjs";

const file = inRoot("src/build/wasm/page.profile");
const PER_LINE = 12;

/** Returns `isHot(name)`, a test for the names of wasm functions. A function that is newer than the profile is cold. */
export function readProfile() {
  const lines = fs.readFileSync(file, "utf8").split("\n");
  const marks = new Set(lines.filter((line) => !line.startsWith("#")).flatMap((line) => line.split(" ")));
  return (name) => marks.has(markOf(name));
}

/** Writes the names of functions, each as a hash of eight characters. */
export function writeProfile(names) {
  const marks = [...new Set(names.map(markOf))].sort();
  const lines = Array.from({ length: Math.ceil(marks.length / PER_LINE) }, (_, n) => marks.slice(n * PER_LINE, (n + 1) * PER_LINE).join(" "));
  const says = "# Written by `npm run profile`: the functions of the wasm that a page needs to start, as hashes of their names.";
  fs.writeFileSync(file, `${[says, ...lines].join("\n")}\n`);
}

// The compiler adds a number to the name of a crate. It changes with the version of the crate, so it is left out.
function markOf(name) {
  const plain = name.replace(/\[[0-9a-f]+\]/g, "");
  return createHash("sha256").update(plain).digest("base64url").slice(0, 8);
}
