// The TypeScript of the package and of the web UI: layers, no import cycles, unique type names, short functions.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { cyclesOf, folderImports, importsOf } from "./import-graph.mjs";
import { inRoot } from "../../../src/build/run.mjs";

test("no files of src/npm form an import cycle", () => {
  const imports = importsOf(inRoot("src/npm"));
  assert.ok([...imports.values()].reduce((sum, targets) => sum + targets.size, 0) > 100, "the imports were not read");
  assert.deepEqual(cyclesOf(imports), []);
});

test("no folders of src/npm form an import cycle", () => {
  const folders = folderImports(importsOf(inRoot("src/npm")));
  assert.ok(folders.get("agent").has("call"), "the imports were not read");
  assert.deepEqual(cyclesOf(folders), []);
});

// From the bottom up: a folder imports only folders before it, and the files of the root that hold no code of a subject.
const LAYERS = [
  "values", "runtime", "turn", "protocol", "call", "host", "model", "stores/files", "stores/readable", "stores/redis", "stores", "session", "tabs", "workspace", "subagent", "agent",
  "edge", "remote", "index.ts", "entry", "testing", "transcript", "types",
];
const BELOW_ALL = ["core.d.ts", "errors.ts", "glue.d.ts", "inline-wasm.d.ts", "types.ts", "wasm-module.d.ts"];

test("each folder of src/npm imports only folders of lower layers", () => {
  for (const [folder, targets] of folderImports(importsOf(inRoot("src/npm")))) {
    if (BELOW_ALL.includes(folder)) assert.deepEqual([...targets], [], `${folder} is below all layers`);
    else assert.ok(LAYERS.includes(folder), `${folder} is in no layer: add it to LAYERS`);
    const wrong = [...targets].filter((target) => !BELOW_ALL.includes(target) && LAYERS.indexOf(target) >= LAYERS.indexOf(folder));
    assert.deepEqual(wrong, [], `${folder} imports a layer above it`);
  }
});

test("the web UI imports the package by its public names only", () => {
  const names = fs.readdirSync(inRoot("www"), { recursive: true }).filter((name) => /\.tsx?$/.test(name) && !/node_modules|vite\.config/.test(name));
  const targets = names.flatMap((name) =>
    [...fs.readFileSync(inRoot(path.join("www", name)), "utf8").matchAll(/from\s+"([^"]+)"/g)].map(([, target]) => ({ name, target })),
  );
  const { exports } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const isPublic = (target) => Object.hasOwn(exports, `.${target.slice("lockgate".length)}`);
  const isInside = (name, target) => !path.posix.join(path.posix.dirname(name), target).startsWith("..");
  const ours = targets.filter(({ target }) => target === "lockgate" || /^lockgate\/|^\./.test(target));
  assert.ok(ours.some(({ target }) => target === "lockgate"), "the imports were not read");
  assert.deepEqual(ours.filter(({ name, target }) => !(target.startsWith(".") ? isInside(name, target) : isPublic(target))), []);
});

test("no files of www form an import cycle", () => {
  const imports = importsOf(inRoot("www"));
  assert.ok([...imports.values()].reduce((sum, targets) => sum + targets.size, 0) > 50, "the imports were not read");
  assert.deepEqual(cyclesOf(imports), []);
});

test("a cycle between files or folders is found, and imports of types do not count", (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "imports-"));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const files = {
    "one/a.ts": 'import { b } from "../two/b.js";\n',
    "one/c.ts": "export const c = 1;\n",
    "two/b.ts": 'import {\n  c,\n} from "../one/c.js";\nimport type { A } from "../one/a.js";\n',
    "two/d.ts": 'export { e } from "./e.js";\n',
    "two/e.ts": 'import "./d.js";\n',
    "three/f.ts": 'import { type A } from "../one/a.js";\n',
  };
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
  }
  const imports = importsOf(root);
  const inFiles = cyclesOf(imports);
  assert.equal(inFiles.length, 1);
  assert.deepEqual([...new Set(inFiles[0].split(" → "))].sort(), ["two/d.ts", "two/e.ts"]);
  const inFolders = cyclesOf(folderImports(imports));
  assert.equal(inFolders.length, 1);
  assert.deepEqual([...new Set(inFolders[0].split(" → "))].sort(), ["one", "two"]);
  assert.deepEqual([...imports.get("three/f.ts")], []);
});

// One idea for two hosts or two sides of a border: the glue's own classes, the two entries of the edge, the provider dialects.
const SAME_IDEA = ["Agent", "AgentObject", "Call", "Dialect"];

test("a type name is unique in src/npm", () => {
  const found = new Map();
  const names = fs.readdirSync(inRoot("src/npm"), { recursive: true }).filter((name) => name.endsWith(".ts"));
  for (const name of names) {
    const text = fs.readFileSync(inRoot(path.join("src/npm", name)), "utf8");
    for (const [, type] of text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:class|enum|interface|type) (\w+)/gm)) {
      found.set(type, new Set([...(found.get(type) ?? []), name]));
    }
  }
  assert.ok(found.has("AgentOptions") && found.has("ExportedFunction"), "the types were not read");
  const several = [...found].filter(([type, files]) => files.size > 1 && !SAME_IDEA.includes(type));
  assert.deepEqual(several.map(([type, files]) => [type, ...files]), []);
});

// Functions at the left margin, and methods of classes and objects, each with the number of its lines.
function* functionsIn(text) {
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    const [, indent, name] = /^( {0,2})(?:export )?(?:static )?(?:async )?(?:function\*? |\*|get )?([#\w]+)(?:<.*>)?\(.*\{$/.exec(line) ?? [];
    if (name === undefined || ["if", "for", "while", "switch", "catch"].includes(name)) continue;
    const length = lines.slice(at).findIndex((each) => each.startsWith(`${indent}}`)) + 1;
    yield { name, length };
  }
}

test("no function of src/npm is longer than 60 lines", () => {
  const names = fs.readdirSync(inRoot("src/npm"), { recursive: true }).filter((name) => name.endsWith(".ts"));
  const all = names.flatMap((name) => [...functionsIn(fs.readFileSync(inRoot(path.join("src/npm", name)), "utf8"))].map((each) => ({ file: name, ...each })));
  assert.ok(all.length > 400, `only ${all.length} functions were found`);
  assert.deepEqual(all.filter(({ length }) => length > 60), []);
});
