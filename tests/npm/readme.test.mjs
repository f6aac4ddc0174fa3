// README keeps its word: its examples compile against the built package, and its numbers are the budgets.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = fs.readFileSync(path.join(root, "README.md"), "utf8");

test("the examples in README compile, and are short", () => {
  const examples = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map((match) => match[1]);
  assert.equal(examples.length, 5, "one each for page, Node, Worker, models and people");
  const folder = path.join(root, "target/readme");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  examples.forEach((text, index) => {
    assert.ok(
      text.trim().split("\n").length <= 18,
      `example ${index} has ${text.trim().split("\n").length} lines`,
    );
    fs.writeFileSync(path.join(folder, `example-${index}.ts`), text);
  });
  const config = {
    compilerOptions: {
      strict: true,
      noEmit: true,
      target: "ES2022",
      module: "ESNext",
      moduleResolution: "bundler",
      moduleDetection: "force",
      lib: ["ES2023", "DOM", "DOM.Iterable", "ESNext.Disposable"],
      types: [],
      paths: { lockgate: ["../../dist/index.d.ts"] },
    },
    include: ["*.ts"],
  };
  fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  } catch (error) {
    assert.fail(error.stdout);
  }
});

test("the sizes in README are the budgets in package.json", () => {
  const { budgets } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")).lockgate;
  for (const file of Object.keys(budgets)) {
    const number = budgets[file].gzip.toLocaleString("en");
    assert.ok(readme.includes(number), `README does not say ${number} for ${file}`);
  }
});
