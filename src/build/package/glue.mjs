// Turns the JavaScript of wasm-bindgen into a function that makes independent instances.
import { problem } from "../run.mjs";

const closing = /^export \{ initSync, __wbg_init as default \};\s*$/m;
// The lines in which the glue stores its instance, its imports and its views of the memory.
const installed = "wasm = instance.exports;";
const imported = "const imports = __wbg_get_imports();";
const view = /^let (cached\w+Memory\d+) = null;$/gm;
// Parts that we never call: the loader (src/npm/entry has its own), an older form of `initSync`'s argument, `Symbol.dispose` (we
// free objects ourselves), a fallback for hosts without `encodeInto` (they cannot run our wasm), and strings for a module without
// `realloc`.
const unused = [
  /^async function __wbg_load\(.*?^}\n/ms,
  /^let __wbg_init_promise;\n/m,
  /^async function __wbg_init\(.*?^}\n/ms,
  /^async function __wbg_init_once\(.*?^}\n/ms,
  /^ {4}if \(module !== undefined\) \{.*?^ {4}\}\n/ms,
  /^if \(!\('encodeInto' in cachedTextEncoder\)\) \{.*?^}\n/ms,
  /^if \(Symbol\.dispose\).*\n/gm,
  /^ {4}if \(realloc === undefined\) \{.*?^ {4}\}\n\n/ms,
];
// The glue writes a string into wasm memory letter by letter, which is fast only for short strings. With this change a long ASCII
// string is encoded at once. A long string with other letters is encoded by the code that follows, which the glue uses for the
// part of a string after its ASCII letters.
const letterByLetter = "    let offset = 0;\n\n    for (; offset < len; offset++) {";
const encodedAtOnce = `    const isLong = len > 500;
    let offset = isLong && cachedTextEncoder.encodeInto(arg, mem.subarray(ptr, ptr + len)).read === len ? len : 0;

    for (; !isLong && offset < len; offset++) {`;
const exported = /^export (?=(?:class|function|const) ([A-Za-z_$][\w$]*))/gm;

/**
 * The glue as a function `instantiate(guard, fetchRest)`, which returns `initSync`, `complete`, `release` and all exports of the
 * glue. The glue uses the object that `guard` makes from the exports of the instance. `release` drops the references to its
 * memory. An instance of the first part calls `fetchRest` when it needs the rest; this must call `complete(module)`.
 *
 * The original glue keeps one instance in a variable of its module. After a trap that instance is dead, and a second instance
 * with its own classes and caches is needed. Bundlers break the trick of importing a file twice with different queries, but a
 * function can be called twice.
 */
export function glueFactory(glue, seal) {
  const names = [...glue.matchAll(exported)].map((match) => match[1]);
  if (!closing.test(glue)) throw unexpected("does not end by exporting initSync");
  if (names.length === 0) throw unexpected("has no exports of ours");
  if (glue.split(installed).length !== 2) throw unexpected("keeps its exports in another place");
  if (!glue.includes(imported)) throw unexpected("gets its imports in another way");
  if (!glue.includes(letterByLetter)) throw unexpected("encodes strings in another way");
  const views = [...glue.matchAll(view)].map((match) => match[1]);
  if (views.length === 0) throw unexpected("keeps no views of its memory");
  const body = unused
    .reduce(without, glue)
    .replace(closing, "")
    .replace("function initSync(module) {", "function initSync({ module }) {")
    .replace(exported, "")
    .replace(installed, "wasm = guard(raw = instance.exports);")
    .replace(letterByLetter, encodedAtOnce)
    .replace(imported, "const imports = (glue = { ...__wbg_get_imports(), lockgate: { rest: fetchRest } });")
    .trimEnd();
  const left = /^\s*(?:export|import)\b.*|import\.meta.*|\bimport\(.*/m.exec(body);
  if (left) throw unexpected(`still has \`${left[0].trim()}\``);
  return [
    "// Written by `npm run build` from what wasm-bindgen made: each call returns a new, independent instance.",
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
    `The glue of wasm-bindgen has an unexpected shape: it ${what}. Look at target/glue/core.js and adapt src/build/package/glue.mjs.`,
  );
}
