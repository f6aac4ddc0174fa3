// Every public name and every member of a public type has a doc comment in the declarations of the package.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { SyntaxKind } from "typescript/unstable/ast";
import { withPublicNames } from "../../../src/build/api.mjs";
import { inRoot } from "../../../src/build/run.mjs";
import { project } from "../support/project.mjs";

/** The declaration files that the entry points lead to, each once, with their public names. */
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

/** Exported names without a doc comment. Only the first overload needs one. */
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

test("every public name has a doc comment", async () => {
  const found = await declarations();
  assert.ok(found.length > 15 && found.some(({ file }) => file.endsWith("slim.d.ts")));
  assert.equal(found.flatMap(silentNames).join("\n"), "");
});

const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));

test("every member of a public type has a doc comment", () => {
  const members = withPublicNames(dist, ({ entries, hidden }) => [...entries.flatMap(({ own }) => own), ...hidden].flatMap(membersOf));
  for (const known of ["Agent.call", "SessionInfo.title", "AgentEvent.queued", "Block.tool_use.input", "AgentMethods.fork", "RemoteOptions.url"])
    assert.ok(members.some(({ name }) => name === known), `${known} was not found`);
  const silent = members.filter(({ isDocumented }) => !isDocumented).map(({ name }) => name);
  assert.equal(silent.join("\n"), "");
});

const MEMBERS = [
  SyntaxKind.PropertySignature, SyntaxKind.MethodSignature, SyntaxKind.IndexSignature,
  SyntaxKind.PropertyDeclaration, SyntaxKind.MethodDeclaration, SyntaxKind.GetAccessor,
];
const BODIES = [SyntaxKind.InterfaceDeclaration, SyntaxKind.ClassDeclaration];

/**
 * The members that need a doc comment: every member of an interface or class, and every variant of a union that is an object. In an
 * object type inside them, each member needs one if another member has one; otherwise the comment of the whole is enough.
 */
function membersOf({ name, symbol }) {
  return symbol.declarations.map((handle) => handle.resolve()).flatMap((node) => {
    if (!BODIES.includes(node.kind)) return node.kind === SyntaxKind.TypeAliasDeclaration ? membersInside(node, name) : [];
    return ownMembers(node, name).flatMap((member) => [member, ...membersInside(member.node, member.name)]);
  });
}

/** The members of an interface, a class or an object type. */
function ownMembers(node, path) {
  const members = childrenOf(node).filter(({ kind }) => MEMBERS.includes(kind)).map((member) => ({ name: `${path}.${nameOf(member)}`, isDocumented: hasComment(member.pos, member), node: member }));
  return members.filter(({ name }) => !name.includes(".#"));
}

/** The members that need a comment in the types of a node. Parameters are described by the comment of their method. */
function membersInside(node, path) {
  const children = childrenOf(node);
  return children.flatMap((child, index) => {
    if (child.kind === SyntaxKind.Parameter) return [];
    if (child.kind !== SyntaxKind.TypeLiteral) return membersInside(child, path);
    const isVariant = node.kind === SyntaxKind.UnionType && isWhole(node);
    const name = isVariant ? `${path}.${variantOf(child)}` : path;
    const own = ownMembers(child, name);
    const needed = own.some(({ isDocumented }) => isDocumented) ? own.filter((member) => wordOf(member.node) === undefined) : [];
    const isDocumented = hasComment(children[index - 1]?.end ?? node.pos, child);
    return [...(isVariant ? [{ name, isDocumented }] : []), ...needed, ...own.flatMap((member) => membersInside(member.node, member.name))];
  });
}

/** Whether a type is the whole of a declared type, or a part that `&` or parentheses connect with the rest. */
function isWhole({ parent }) {
  return [SyntaxKind.IntersectionType, SyntaxKind.ParenthesizedType].includes(parent.kind) ? isWhole(parent) : parent.kind === SyntaxKind.TypeAliasDeclaration;
}

function childrenOf(node) {
  const children = [];
  node.forEachChild((child) => void children.push(child));
  return children;
}

const hasComment = (from, node) => node.getSourceFile().text.slice(from, node.getStart()).includes("/**");
const nameOf = (member) => member.name?.getText() ?? "[index]";
/** The text of a member that can have only one, such as `type: "text"`. */
const wordOf = (member) => /: "([^"]*)";$/.exec(member.getText())?.[1];
/** A name for a variant of a union: the value of its first such member, or the name of its first member. */
const variantOf = (type) => childrenOf(type).map(wordOf).find((word) => word !== undefined) ?? nameOf(childrenOf(type)[0]);
