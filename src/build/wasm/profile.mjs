// Which functions a page needs to start: found by running them, kept in page.profile.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { inRoot } from "../run.mjs";

const file = inRoot("src/build/wasm/page.profile");
const PER_LINE = 12;

/** Whether a function belongs to the part that a page starts with. One that was written since counts as cold. */
export function readProfile() {
  const lines = fs.readFileSync(file, "utf8").split("\n");
  const marks = new Set(lines.filter((line) => !line.startsWith("#")).flatMap((line) => line.split(" ")));
  return (name) => marks.has(markOf(name));
}

/** Keeps the names of functions, each as a mark of eight characters. */
export function writeProfile(names) {
  const marks = [...new Set(names.map(markOf))].sort();
  const lines = Array.from({ length: Math.ceil(marks.length / PER_LINE) }, (_, n) => marks.slice(n * PER_LINE, (n + 1) * PER_LINE).join(" "));
  const says = "# Written by `npm run profile`: the functions of the wasm that a page needs to start, as hashes of their names.";
  fs.writeFileSync(file, `${[says, ...lines].join("\n")}\n`);
}

// The compiler tells crates of one name apart by a number that changes with their version.
function markOf(name) {
  const plain = name.replace(/\[[0-9a-f]+\]/g, "");
  return createHash("sha256").update(plain).digest("base64url").slice(0, 8);
}
