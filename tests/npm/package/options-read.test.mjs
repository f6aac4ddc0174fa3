// Every option in the TypeScript types reaches Rust: the names come from the compiler, the values from the testing build.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { SymbolFlags } from "typescript/unstable/sync";
import { withPublicNames } from "../../../src/build/api.mjs";
import { inRoot } from "../../../src/build/run.mjs";

const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));

/** Options that Rust never gets as JSON, each with the code that reads it. */
const READ_ELSEWHERE = {
  model: "createAgent, which hands the model over as a port",
  fallbackModel: "createAgent, as a port",
  "compaction.model": "createAgent, as a port",
  "memory.model": "createAgent, as a port",
  "subagents[].model": "createAgent, as a port",
  "subagents[].compaction.model": "createAgent, as a port",
  tools: "createAgent, as ports and their specifications",
  middleware: "createAgent, as ports",
  store: "createAgent, as a port",
  tokenCounter: "createAgent, as a function",
  shutdownSignals: "createAgent, which listens to the signals",
  crossTab: "createAgent, which chooses the lock",
  replicas: "createAgent, which checks the store",
  permissions: "createAgent, which makes a PermissionContext of it",
  "generate.*": "the dialects, which take it as it is",
};

const { optionsAsRead } = await testingBuild();
const options = withPublicNames(dist, optionTree);

test("every option of AgentOptions with a value other than its default arrives in Rust", () => {
  const paths = leavesOf(options).filter(({ name }) => !isElsewhere(name));
  const unread = paths.filter(({ name, before, after }) => {
    const [plain, given] = [read(before), read(after)];
    assert.doesNotMatch(given, /^OPTIONS/, `${name} is refused`);
    return plain === given;
  });
  assert.deepEqual(unread.map(({ name }) => name), []);
  for (const name of ["compaction.flushBeforeCompact", "persistence.permissions", "compaction.truncateArgs.maxArgLength", "subagents[].compaction.reserve"])
    assert.ok(paths.some((each) => each.name === name), `${name} was not found in the types`);
});

test("every name in the list of options that are read elsewhere is an option", () => {
  const names = leavesOf(options).map(({ name }) => name);
  for (const listed of Object.keys(READ_ELSEWHERE)) assert.ok(names.some((name) => matches(name, listed)), `there is no option ${listed}`);
});

test("an unknown name in an object of options, at every depth outside lists, is refused with OPTIONS and the path of the object", async () => {
  const { createAgent, demoModel } = await import(pathToFileURL(path.join(dist, "entry/node.js")).href);
  const objects = objectsOf(options).filter(({ name }) => !PASSED_ON.includes(name));
  assert.ok(objects.some(({ name }) => name === "compaction.truncateArgs"));
  for (const { name, wrap } of objects) {
    const given = wrap({ unheardOf: 1 });
    await assert.rejects(createAgent({ name: "agent", model: demoModel(), ...given }), (error) => {
      assert.equal(error.code, "OPTIONS", name);
      assert.ok(error.message.includes("unheardOf") && error.message.includes(name), `${name}: ${error.message}`);
      return true;
    });
  }
});

/** Objects whose names createAgent does not check. */
const PASSED_ON = ["generate", "generate.toolChoice"];

/** The agent's options, and each object below them that is not in a list. */
function objectsOf(tree, name = "", wrap = (given) => given) {
  const below = tree.members.filter(({ members }) => members);
  return [{ name, wrap }, ...below.flatMap((each) => objectsOf(each, name === "" ? each.name : `${name}.${each.name}`, (given) => wrap({ [each.name]: given })))];
}

const read = (given) => optionsAsRead(JSON.stringify({ name: "agent", ...given }));
const isElsewhere = (name) => Object.keys(READ_ELSEWHERE).some((listed) => matches(name, listed));
const matches = (name, listed) => name === listed || name.startsWith(`${listed}.`) || name.startsWith(`${listed}[]`) || (listed.endsWith(".*") && name.startsWith(listed.slice(0, -1)));

async function testingBuild() {
  const { instantiate } = await import(pathToFileURL(path.join(dist, "core.js")).href);
  const instance = instantiate((exports) => exports, () => {});
  instance.initSync({ module: await WebAssembly.compile(fs.readFileSync(path.join(dist, "core.wasm"))) });
  return instance;
}

/** The members of AgentOptions as a tree: `{ members }`, `{ list }` or `{ value }`. */
function optionTree({ entries, project: { checker } }) {
  const { symbol } = entries[0].own.find(({ name }) => name === "AgentOptions");
  return describe(checker, checker.getDeclaredTypeOfSymbol(symbol));
}

function describe(checker, type) {
  const parts = (type.isUnionType() ? type.getTypes() : [type]).filter((each) => !["undefined", "null"].includes(checker.typeToString(each)));
  if (parts.every((each) => each.isBooleanLiteralType())) return { value: "boolean" };
  const literals = parts.filter((each) => each.isStringLiteralType()).map(({ value }) => value);
  const object = parts.find((each) => each.isObjectType());
  const isFlag = parts.some((each) => each.isBooleanLiteralType());
  if (object === undefined) return { value: literals.length > 0 ? [...(isFlag ? [true] : []), ...literals] : checker.typeToString(parts[0]) };
  if (checker.isArrayType(object)) return { list: describe(checker, checker.getTypeArguments(object)[0]) };
  if (checker.getSignaturesOfType(object, 0).length > 0) return { value: "function" };
  const members = checker.getPropertiesOfType(object).filter(({ name }) => !name.startsWith("__@"));
  if (members.length === 0 || ["Model", "Store", "Tool", "Middleware"].includes(checker.typeToString(object))) return { value: members.length === 0 ? "record" : "port" };
  return { members: members.map((each) => ({ name: each.name, optional: (each.flags & SymbolFlags.Optional) !== 0, ...describe(checker, checker.getTypeOfSymbol(each)) })) };
}

/** Each option without members: its path, and two sets of options that differ in nothing but its value. */
function leavesOf(tree, prefix = "", wrap = (given) => given, needed = {}) {
  return tree.members.flatMap((member) => {
    const name = prefix + member.name;
    const put = (value) => wrap({ ...needed, [member.name]: value });
    if (member.members) return leavesOf(member, `${name}.`, put);
    if (member.list?.members) return leavesOf(member.list, `${name}[].`, (given) => put([given]), requiredOf(member.list));
    const [before, after] = valuesOf(member, name);
    return [{ name, before: put(needed[member.name] ?? before), after: put(after) }];
  });
}

const requiredOf = ({ members }) =>
  Object.fromEntries(members.filter(({ optional }) => !optional).map((each) => [each.name, valuesOf(each, each.name)[1]]).map(([name, value]) => [name, Array.isArray(value) ? [] : `${value} of all`]));

/** Two values of an option. For text, numbers and lists the first is "left out", so the second differs from the default. */
function valuesOf({ value, list }, name) {
  if (list) return [undefined, ["item"]];
  if (Array.isArray(value)) return [value[0], value.at(-1)];
  if (value === "boolean") return [false, true];
  if (value === "number") return [undefined, name === "timeouts.model" ? 7 : 12_345];
  return [undefined, value === "record" ? { "a.md": "text" } : "text"];
}
