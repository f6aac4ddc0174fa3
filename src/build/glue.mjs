// Turns the JavaScript that wasm-bindgen writes into a factory of instances.
import { problem } from "./run.mjs";

const closing = /^export \{ initSync, __wbg_init as default \};\s*$/m;
// Where the glue puts what it has instantiated, and the views of its memory that it keeps.
const installed = "wasm = instance.exports;";
const imported = "const imports = __wbg_get_imports();";
const view = /^let (cached\w+Memory\d+) = null;$/gm;
// What nobody calls here: the loader (src/npm/entry has its own), another way to pass what `initSync` takes, `using` of what
// we free ourselves, and help for hosts that cannot encode into memory, which have no wasm of ours either.
const unused = [
  /^async function __wbg_load\(.*?^}\n/ms,
  /^let __wbg_init_promise;\n/m,
  /^async function __wbg_init\(.*?^}\n/ms,
  /^async function __wbg_init_once\(.*?^}\n/ms,
  /^ {4}if \(module !== undefined\) \{.*?^ {4}\}\n/ms,
  /^if \(!\('encodeInto' in cachedTextEncoder\)\) \{.*?^}\n/ms,
  /^if \(Symbol\.dispose\).*\n/gm,
];
const exported = /^export (?=(?:class|function|const) ([A-Za-z_$][\w$]*))/gm;

/**
 * The glue as a function `instantiate(guard, fetchRest)`, which returns `initSync`, `complete`, `release` and everything the
 * glue exported. The glue calls what `guard` makes of the instance's exports; `release` lets go of its memory. An instance of
 * the first part alone calls `fetchRest` when it needs the rest, and then `complete(module)` must have been called.
 *
 * The glue keeps its one instance in a variable of its module. After a trap that instance is dead
 * and a second one is needed, with classes and caches of its own. Importing the file twice under
 * different queries does not survive bundlers; calling a function twice does.
 */
export function glueFactory(glue, seal) {
  const names = [...glue.matchAll(exported)].map((match) => match[1]);
  if (!closing.test(glue)) throw unexpected("does not end by exporting initSync");
  if (names.length === 0) throw unexpected("exports nothing of ours");
  if (glue.split(installed).length !== 2) throw unexpected("keeps its exports in another place");
  if (!glue.includes(imported)) throw unexpected("gets its imports in another way");
  const views = [...glue.matchAll(view)].map((match) => match[1]);
  if (views.length === 0) throw unexpected("keeps no views of its memory");
  const body = unused
    .reduce(without, glue)
    .replace(closing, "")
    .replace("function initSync(module) {", "function initSync({ module }) {")
    .replace(exported, "")
    .replace(installed, "wasm = guard(raw = instance.exports);")
    .replace(imported, "const imports = (glue = { ...__wbg_get_imports(), lockgate: { rest: fetchRest } });")
    .trimEnd();
  const left = /^\s*(?:export|import)\b.*|import\.meta.*|\bimport\(.*/m.exec(body);
  if (left) throw unexpected(`still has \`${left[0].trim()}\``);
  return [
    "// Written by `npm run build` from what wasm-bindgen made: each call gives a fresh, independent instance.",
    `export const SEAL = ${JSON.stringify(seal)};`,
    "export function instantiate(guard, fetchRest) {",
    "let glue, raw;",
    body,
    "function complete(module) { new WebAssembly.Instance(module, { ...glue, page: raw }); raw.$whole.value = 1; }",
    `function release() { wasmInstance = raw = glue = undefined; ${views.map((name) => `${name} = null;`).join(" ")} }`,
    `return { initSync, complete, release, ${names.join(", ")} };`,
    "}",
    "",
  ].join("\n");
}

function without(glue, pattern) {
  const rest = glue.replace(pattern, "");
  if (rest === glue) throw unexpected(`no longer has ${pattern}`);
  return rest;
}

function unexpected(what) {
  return problem(
    `The glue of wasm-bindgen has an unexpected shape: it ${what}. Look at target/glue/core.js and adapt src/build/glue.mjs.`,
  );
}
