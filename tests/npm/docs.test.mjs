// Every public name says what it is for, where an editor shows it: in the declarations of the packed package.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { project } from "./project.mjs";

/** Interfaces whose members are what people look up: each of those has its own sentence. */
const SPOKEN = ["Agent", "AgentOptions", "Call", "CallOptions", "ToolConfig", "ToolContext", "RunContext", "Middleware", "Store", "HttpModelOptions"];

/** The declarations that the entries of the package lead to: each file once, with the names that are public of it. */
async function declarations() {
  const folder = path.join(await project(), "node_modules/lockgate");
  const { exports } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const waiting = Object.values(exports).filter(({ types }) => types).map(({ types }) => ({ file: types, only: null }));
  const found = new Map();
  for (const { file, only } of waiting) {
    const name = path.normalize(file);
    const text = fs.readFileSync(path.join(folder, name), "utf8");
    const known = found.get(name);
    // Null means all of its names.
    found.set(name, { text, only: known === undefined ? only : known.only === null || only === null ? null : [...known.only, ...only] });
    if (known !== undefined) continue;
    for (const [, names, from] of text.matchAll(/^export (?:type )?(?:\*|\{([^}]*)\}) from "(\..*)\.js"/gm)) {
      waiting.push({ file: path.join(path.dirname(name), `${from}.d.ts`), only: names?.match(/\w+/g) ?? null });
    }
  }
  return [...found].map(([file, { text, only }]) => ({ file, text, isPublic: (each) => only === null || only.includes(each) }));
}

const isDocumented = (lines, index) => /\*\/\s*$/.test(lines[index - 1] ?? "");

/** Names that are exported without a sentence before them. An overload needs none after the first. */
function silentNames({ file, text, isPublic }) {
  const lines = text.split("\n");
  const seen = new Set();
  return lines.flatMap((line, index) => {
    const name = /^export (?:declare )?(?:abstract )?(?:interface|type|function|const|class) (\w+)/.exec(line)?.[1];
    if (name === undefined || seen.has(name) || !isPublic(name)) return [];
    seen.add(name);
    return isDocumented(lines, index) ? [] : [`${file}: ${name}`];
  });
}

/** Members of the interfaces that people look up, without a sentence before them. */
function silentMembers({ file, text }) {
  return SPOKEN.flatMap((name) => {
    const body = new RegExp(`^export interface ${name}\\b[^\\n]*\\{\\n([\\s\\S]*?)^\\}`, "m").exec(text)?.[1];
    if (body === undefined) return [];
    const lines = body.split("\n");
    const seen = new Set();
    return lines.flatMap((line, index) => {
      const member = /^ {4}(?:readonly )?(\[?[\w.]+\]?)[?(<:]/.exec(line)?.[1];
      if (member === undefined || seen.has(member)) return [];
      seen.add(member);
      return isDocumented(lines, index) ? [] : [`${file}: ${name}.${member}`];
    });
  });
}

test("every public name, and every member of what people look up, says what it is for", async () => {
  const found = await declarations();
  assert.ok(found.length > 15 && found.some(({ file }) => file.endsWith("slim.d.ts")));
  const silent = found.flatMap((each) => [...silentNames(each), ...silentMembers(each)]);
  assert.equal(silent.join("\n"), "");
});
