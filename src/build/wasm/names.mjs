// Shortens the names of the imports and exports between the wasm and its glue. The names of wasm-bindgen are long, and many end
// in a hash, which does not compress.
import { problem } from "../run.mjs";
import { Reader, leb, withSections } from "./sections.mjs";

const [IMPORTS, EXPORTS] = [2, 7];
const FUNCTION = 0;
// The glue has one object with all imports of the wasm, by their names.
const imported = /(?<=^ {8})__wb\w+(?=: function)/gm;
const exported = /(?<=\bwasm\.)\w+/g;
// src/npm/runtime/guard.ts uses these names, and src/npm/runtime/instance.ts uses `memory`.
const isKept = /^memory$|_free$|^__wbindgen_destroy_closure$/;
// Functions that timers, promises and events call. The compiler names them in several ways; src/npm/runtime/guard.ts knows only `callback…`.
const isCallback = /convert__closures/;

/** The wasm and its glue, with the same short names in both. */
export function withShortNames(wasm, glue) {
  const imports = new Map();
  const exports = new Map();
  const used = new Set(glue.match(exported)?.filter((name) => !isKept.test(name)));
  const short = withSections(wasm, ({ id, body }) => {
    if (id === IMPORTS) return shortImports(body, imports);
    return id === EXPORTS ? shortExports(body, exports, used) : body;
  });
  return { wasm: short, glue: renamed(renamed(glue, imported, imports), exported, exports) };
}

/** Replaces the names that `pattern` finds in the glue. Throws if it does not find every name. */
function renamed(glue, pattern, names) {
  const left = new Set(names.keys());
  const short = glue.replace(pattern, (name) => {
    left.delete(name);
    return names.get(name) ?? name;
  });
  const [missing] = left;
  if (names.size === 0 || missing) throw unexpected(`${missing ?? "nothing"} passes between the two`);
  return short;
}

function shortImports(body, names) {
  const reader = new Reader(body);
  const entries = Array.from({ length: reader.number() }, (_, n) => {
    const module = reader.text();
    const name = reader.text();
    if (reader.byte() !== FUNCTION) throw unexpected(`${name} is imported and no function`);
    names.set(name, shortName(n));
    return Buffer.concat([written(module), written(shortName(n)), leb(FUNCTION), leb(reader.number())]);
  });
  return Buffer.concat([leb(entries.length), ...entries]);
}

function shortExports(body, names, used) {
  const reader = new Reader(body);
  const entries = Array.from({ length: reader.number() }, (_, n) => {
    const name = reader.text();
    if (used.has(name)) names.set(name, isCallback.test(name) ? `callback${n}` : shortName(n));
    return Buffer.concat([written(names.get(name) ?? name), leb(reader.byte()), leb(reader.number())]);
  });
  if (![...names.keys()].some((name) => isCallback.test(name))) throw unexpected("no callback is exported");
  return Buffer.concat([leb(entries.length), ...entries]);
}

/** a, b … z, aa, ab …: a name that needs no quotes. */
function shortName(index) {
  const letter = String.fromCharCode(97 + (index % 26));
  return index < 26 ? letter : shortName(Math.floor(index / 26) - 1) + letter;
}

function written(name) {
  return Buffer.concat([leb(Buffer.byteLength(name)), Buffer.from(name)]);
}

function unexpected(what) {
  return problem(`The wasm and its glue have an unexpected shape: ${what}. Look at target/glue and adapt src/build/wasm/names.mjs.`);
}
