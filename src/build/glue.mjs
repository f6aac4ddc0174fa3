// Turns the JavaScript that wasm-bindgen writes into a factory of instances.
import { problem } from "./run.mjs";

const closing = /^export \{ initSync, __wbg_init as default \};\s*$/m;
const exported = /^export (?=(?:class|function|const) ([A-Za-z_$][\w$]*))/gm;

/**
 * The glue as a function `instantiate()`, which returns `initSync` and everything the glue exported.
 *
 * The glue keeps its one instance in a variable of its module. After a trap that instance is dead
 * and a second one is needed, with classes and caches of its own. Importing the file twice under
 * different queries does not survive bundlers; calling a function twice does.
 */
export function glueFactory(glue) {
  const names = [...glue.matchAll(exported)].map((match) => match[1]);
  if (!closing.test(glue)) throw unexpected("does not end by exporting initSync");
  if (names.length === 0) throw unexpected("exports nothing of ours");
  const body = glue.replace(closing, "").replace(exported, "").trimEnd();
  const left = /^\s*(?:export|import)\b.*|import\.meta.*|\bimport\(.*/m.exec(body);
  if (left) throw unexpected(`still has \`${left[0].trim()}\``);
  return [
    "// Written by `npm run build` from what wasm-bindgen made: each call gives a fresh, independent instance.",
    "export function instantiate() {",
    body,
    `return { initSync, ${names.join(", ")} };`,
    "}",
    "",
  ].join("\n");
}

function unexpected(what) {
  return problem(
    `The glue of wasm-bindgen has an unexpected shape: it ${what}. Look at target/glue/core.js and adapt src/build/glue.mjs.`,
  );
}
