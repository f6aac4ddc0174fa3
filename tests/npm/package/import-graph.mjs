// Finds import cycles among the TypeScript files of a folder, and among its sub-folders.
import fs from "node:fs";
import path from "node:path";

/**
 * The run-time imports of every TypeScript file below `root`: `Map<file, Set<file>>`, with paths relative to `root`. Imports
 * of types are left out: the compiler removes them, so they cannot make a cycle when the program runs.
 */
export function importsOf(root) {
  const names = fs
    .readdirSync(root, { recursive: true })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes("node_modules"))
    .map((name) => name.split(path.sep).join("/"));
  const known = new Set(names);
  return new Map(names.map((name) => [name, targetsOf(fs.readFileSync(path.join(root, name), "utf8"), name, known)]));
}

// An `import … from`, an `export … from` or an `import "…"`, at the beginning of a line.
const STATEMENT = /^(?:import|export)\s+(?:(type\s)?([^;"']*?)\s*from\s+)?"(\.[^"]*)"/gm;

function targetsOf(text, name, known) {
  const targets = new Set();
  for (const [, type, names, target] of text.matchAll(STATEMENT)) {
    if (type !== undefined || isOnlyTypes(names)) continue;
    const file = fileOf(path.posix.join(path.posix.dirname(name), target), known);
    if (file !== undefined) targets.add(file);
  }
  return targets;
}

// `{ type A, type B }`: each name is a type.
function isOnlyTypes(names) {
  const list = /^\{(.*)\}$/s.exec(names ?? "")?.[1];
  const each = (list ?? "").split(",").map((one) => one.trim()).filter((one) => one !== "");
  return each.length > 0 && each.every((one) => one.startsWith("type "));
}

function fileOf(target, known) {
  const base = target.replace(/\.(?:js|jsx|ts|tsx)$/, "");
  return [".ts", ".tsx", ".d.ts", "/index.ts", "/index.tsx"].map((ending) => base + ending).find((file) => known.has(file));
}

/** The same graph between folders. A file of the root counts as a folder of its own. */
export function folderImports(imports) {
  const folderOf = (file) => (file.includes("/") ? path.posix.dirname(file) : file);
  const folders = new Map();
  for (const [file, targets] of imports) {
    const from = folderOf(file);
    if (!folders.has(from)) folders.set(from, new Set());
    for (const target of targets) if (folderOf(target) !== from) folders.get(from).add(folderOf(target));
  }
  return folders;
}

/** The cycles of the graph, found by a depth-first walk: `["a → b → a"]`. */
export function cyclesOf(graph) {
  const cycles = [];
  const done = new Set();
  const trail = [];
  const walk = (node) => {
    if (trail.includes(node)) {
      cycles.push([...trail.slice(trail.indexOf(node)), node].join(" → "));
      return;
    }
    if (done.has(node)) return;
    trail.push(node);
    for (const next of graph.get(node) ?? []) walk(next);
    trail.pop();
    done.add(node);
  };
  for (const node of graph.keys()) walk(node);
  return cycles;
}
