// Writes src/npm/glue.d.ts: the types of what Rust exports, from wasm-bindgen, and of what Rust calls, from its `extern` blocks.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { capture, inRoot, must, problem } from "../run.mjs";

/** The file in the repository. */
export const glueTypesFile = inRoot("src/npm/glue.d.ts");

const INTRODUCTION = `// Written by \`npm run build\` from src/wasm: what Rust exports, and what it calls. \`npm run check\` fails if this file is out of date.
`;

/** Writes the file again if it differs from what wasm-bindgen has just written into `glue`. Returns whether it differed. */
export function updateGlueTypes(glue) {
  const types = glueTypes(fs.readFileSync(path.join(glue, "core.d.ts"), "utf8"), rustOfBorder());
  if (types === storedTypes()) return false;
  fs.writeFileSync(glueTypesFile, types);
  return true;
}

/** A problem if the file in the repository is out of date; else null. Builds the Rust code without optimisation to compare. */
export async function staleGlueTypes({ cargo, wasmTarget, bindgen }) {
  const compiled = await capture(cargo, ["build", "--locked", "--lib", "--target", wasmTarget], { env: { CARGO_PROFILE_DEV_DEBUG: "false" } });
  if (compiled.code !== 0) return problem("The Rust code does not compile.", compiled.output);
  const target = path.resolve(inRoot(), process.env.CARGO_TARGET_DIR || "target");
  const glue = inRoot("target/glue-types");
  const raw = path.join(target, wasmTarget, "debug", "lockgate.wasm");
  await must(bindgen, ["--target", "web", "--out-name", "core", "--out-dir", glue, raw], { advice: "wasm-bindgen failed." });
  const types = glueTypes(fs.readFileSync(path.join(glue, "core.d.ts"), "utf8"), rustOfBorder());
  if (types === storedTypes()) return null;
  const changes = changedLines(storedTypes(), types);
  return problem("What Rust exports or calls has changed. Run `npm run build`, correct the TypeScript, and commit src/npm/glue.d.ts.", changes.join("\n"));
}

const storedTypes = () => (fs.existsSync(glueTypesFile) ? fs.readFileSync(glueTypesFile, "utf8") : "");

function changedLines(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  return [...old.filter((line) => !now.includes(line)).map((line) => `- ${line}`), ...now.filter((line) => !old.includes(line)).map((line) => `+ ${line}`)];
}

/** The types, from wasm-bindgen's declarations and from the Rust files of the border. */
export function glueTypes(declarations, files) {
  return [INTRODUCTION, ...exportsOf(declarations), ...files.flatMap(importsOf)].join("\n");
}

function rustOfBorder() {
  const names = fs.readdirSync(inRoot("src/wasm"), { recursive: true }).filter((name) => name.endsWith(".rs")).sort();
  return names.map((name) => fs.readFileSync(inRoot("src/wasm", name), "utf8"));
}

// wasm-bindgen writes the types of its loader last. They are left out, because `glueFactory` removes the loader and `Symbol.dispose`.
function exportsOf(declarations) {
  const end = declarations.indexOf("export type InitInput");
  if (end < 0) throw unexpected("its declarations do not end with those of its loader");
  const own = declarations
    .slice(0, end)
    .replace(/^\s*\/\*[\s\S]*?\*\/\n/gm, "")
    .replaceAll("    [Symbol.dispose](): void;", "    /** Drops the handle without running anything: for instances that have trapped. */\n    __destroy_into_raw(): number;")
    .replaceAll("    ", "  ")
    .replace(/^(?=export class )/gm, "\n");
  if (!own.includes("export class Agent {")) throw unexpected("its declarations have no class Agent");
  return own.split(/\n\n+/).map((part) => `${part.trim()}\n`).filter((part) => part.trim() !== "");
}

const block = /#\[wasm_bindgen\]\nextern "C" \{\n(.*?)^\}/gms;
const item = /((?:^ {4}(?:\/\/|#\[).*\n)*)^ {4}(?:pub(?:\([a-z]+\))? )?(?:type (\w+);|fn (\w+)\(([^)]*)\)(?: -> ([^;]+))?;)/gm;

/** An interface for each type of a Rust file that begins with `Js`: the functions that Rust calls. */
function importsOf(rust) {
  const members = new Map();
  for (const [, body] of rust.matchAll(block)) {
    for (const [, before, type, name, parameters, answer] of body.matchAll(item)) {
      if (type?.startsWith("Js")) members.set(type, []);
      const [self, ...rest] = (parameters ?? "").split(/,\s*/).map((each) => each.trim()).filter((each) => each !== "");
      const owner = /^this: &(Js\w+)$/.exec(self ?? "")?.[1];
      if (name !== undefined && owner !== undefined) members.get(owner).push(memberOf(before, name, rest, answer));
    }
  }
  return [...members].map(([type, lines]) => `export interface ${type} {\n${lines.join("\n")}\n}\n`);
}

function memberOf(before, name, parameters, answer = "()") {
  const jsName = /js_name = (\w+)/.exec(before)?.[1] ?? name;
  const type = typeOf(answer.replace(/^JsResult<(.*)>$/, "$1"));
  if (/\bgetter\b/.test(before)) return `  readonly ${jsName}: ${type};`;
  const given = parameters.map((parameter) => parameter.split(": ")).map(([each, rust]) => `${camelCase(each)}: ${typeOf(rust)}`);
  return `  ${jsName}(${given.join(", ")}): ${type};`;
}

const SIMPLE = {
  "()": "void",
  "&str": "string",
  String: "string",
  bool: "boolean",
  u16: "number",
  u32: "number",
  f64: "number",
  "&[u8]": "Uint8Array",
  Uint8Array: "Uint8Array",
  JsValue: "unknown",
  "&JsValue": "unknown",
  Promise: "Promise<unknown>",
  "&Promise": "Promise<unknown>",
  Function: "Function",
};

function typeOf(rust) {
  const [, outer, inner] = /^(Option|Vec)<(.*)>$/.exec(rust) ?? [];
  if (outer === "Option") return `${typeOf(inner)} | undefined`;
  if (outer === "Vec") return `readonly ${typeOf(inner)}[]`;
  if (/^Js\w+$/.test(rust) && rust !== "JsValue") return rust;
  if (rust in SIMPLE) return SIMPLE[rust];
  throw problem(`src/build/package/glue-types.mjs does not know how TypeScript writes the Rust type ${rust}: add it to SIMPLE.`);
}

const camelCase = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

function unexpected(what) {
  return problem(`wasm-bindgen writes something unexpected: ${what}. Look at target/glue/core.d.ts and adapt src/build/package/glue-types.mjs.`);
}
