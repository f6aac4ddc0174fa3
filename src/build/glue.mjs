// Turns the JavaScript that wasm-bindgen writes into a factory of instances.
import { problem } from "./run.mjs";

const closing = /^export \{ initSync, __wbg_init as default \};\s*$/m;
// Where the glue puts what it has instantiated, and the views of its memory that it keeps.
const installed = "wasm = instance.exports;";
const view = /^let (cached\w+Memory\d+) = null;$/gm;
const exported = /^export (?=(?:class|function|const) ([A-Za-z_$][\w$]*))/gm;

/**
 * The glue as a function `instantiate(guard)`, which returns `initSync`, `release` and everything the glue exported.
 * The glue calls what `guard` makes of the instance's exports; `release` lets go of its memory.
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
  const views = [...glue.matchAll(view)].map((match) => match[1]);
  if (views.length === 0) throw unexpected("keeps no views of its memory");
  const body = glue
    .replace(closing, "")
    .replace(exported, "")
    .replace(installed, "wasm = guard(instance.exports);")
    .trimEnd();
  const left = /^\s*(?:export|import)\b.*|import\.meta.*|\bimport\(.*/m.exec(body);
  if (left) throw unexpected(`still has \`${left[0].trim()}\``);
  return [
    "// Written by `npm run build` from what wasm-bindgen made: each call gives a fresh, independent instance.",
    `export const SEAL = ${JSON.stringify(seal)};`,
    "export function instantiate(guard) {",
    body,
    `function release() { wasmInstance = undefined; ${views.map((name) => `${name} = null;`).join(" ")} }`,
    `return { initSync, release, ${names.join(", ")} };`,
    "}",
    "",
  ].join("\n");
}

function unexpected(what) {
  return problem(
    `The glue of wasm-bindgen has an unexpected shape: it ${what}. Look at target/glue/core.js and adapt src/build/glue.mjs.`,
  );
}
