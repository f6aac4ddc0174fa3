// Installs the bundlers and Node versions for tests/packaging, and prints the table of results.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { inRoot, must, npmCommand, step } from "../run.mjs";

const folder = inRoot("target/packaging");

/** Installs the packages that tests/packaging pins into target/, on first use. Returns the folder. */
export async function installPackagingTools() {
  const files = ["package.json", "package-lock.json", ".npmrc"];
  const contents = files.map((name) => fs.readFileSync(inRoot("tests/packaging", name)));
  const wanted = createHash("sha256").update(Buffer.concat(contents)).digest("hex");
  const stamp = path.join(folder, "node_modules/.lockgate-lock");
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === wanted) return folder;
  fs.mkdirSync(folder, { recursive: true });
  files.forEach((name, index) => fs.writeFileSync(path.join(folder, name), contents[index]));
  const [npm, ...first] = npmCommand();
  await step("Installing bundlers and other versions of Node (once)", (show) =>
    must(npm, [...first, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: folder,
      show,
      advice: "npm could not install the bundlers: check the network and run this again.",
    }),
  );
  fs.writeFileSync(stamp, wanted);
  return folder;
}

/** An empty file into which the tests write one line per combination. */
export function freshMatrix() {
  const file = path.join(folder, "matrix.jsonl");
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(file, "");
  return file;
}

/** Prints these lines as a table. */
export function printMatrix(file) {
  const rows = fs.readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const cells = rows.map(({ place, how, works, detail }) => [place, how, works ? "works" : "FAILED", detail]);
  const all = [["where", "how", "", "details"], ...cells.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column].length)));
  console.log("");
  for (const row of all) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
}
