// Compares the package's public types with the contract they are written against: `node tests/contract/api.mjs`.
//
// The contract lies beside the checkout, in ../shared/api; where it is absent there is nothing to compare.
// pending.json lists what the package does not have yet, or not yet whole. It may only shrink.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { buildTypes } from "../../src/build/build.mjs";
import { capture, inRoot, main, problem } from "../../src/build/run.mjs";

const contract = inRoot("../shared/api/lockgate.d.ts");
const folder = inRoot("target/contract");

/** Compared member by member, because they grow member by member. */
const GROWING = [
  "Agent",
  "AgentOptions",
  "Call",
  "CallOptions",
  "ToolConfig",
  "ToolContext",
  "RunContext",
];

/** Takes and gives those: it is used in the contract's place, while what is added to them is free. */
const OF_GROWING = ["createAgent"];

/** What generic types are compared with. */
const ARGUMENTS = {
  AgentEventOf: '"call-end"',
  BlockOf: '"tool_result"',
  Call: "{ city: string }",
  InferSchema: "Sample",
  Media: '"image"',
  Reply: "{ city: string }",
  StandardSchema: "string, number",
  ToolConfig: "{ city: string }, Sample",
};

/** What of the contract agrees and what does not, by name, sorted; null where there is no contract. */
export async function compare({ dist = inRoot("dist") } = {}) {
  if (!fs.existsSync(contract)) return null;
  const text = fs.readFileSync(contract, "utf8");
  const assertions = assertionsOf(text);
  write(text, dist, assertions);
  const unlike = await complaintsOfCompiler(assertions.length);
  const named = (isWanted) =>
    assertions
      .filter((_, index) => unlike.has(index) === isWanted)
      .map(({ name }) => name)
      .sort();
  return { agreed: named(false), lacking: named(true) };
}

/** The names in pending.json. */
export function pendingNames() {
  return JSON.parse(fs.readFileSync(inRoot("tests/contract/pending.json"), "utf8"));
}

/** What is wrong, one sentence each: something has come to disagree, or to agree while it is listed as pending. */
export function judge({ agreed, lacking }, pending) {
  const unknown = pending.filter((name) => !agreed.includes(name) && !lacking.includes(name));
  return [
    ...lacking
      .filter((name) => !pending.includes(name))
      .map((name) => `${name} disagrees with the contract, or is missing`),
    ...agreed
      .filter((name) => pending.includes(name))
      .map(
        (name) =>
          `${name} agrees with the contract now: take it out of tests/contract/pending.json`,
      ),
    ...unknown.map((name) => `${name} is in tests/contract/pending.json but not in the contract`),
    ...(isSorted(pending) ? [] : ["tests/contract/pending.json is not sorted"]),
  ];
}

const isSorted = (names) => names.every((name, index) => index === 0 || names[index - 1] < name);

/** One assertion for each exported name, or for each member of those that grow. */
export function assertionsOf(text) {
  const exported = /^export (?:declare )?(interface|type|function|const|class) (\w+)/gm;
  const seen = new Map([...text.matchAll(exported)].map(([, kind, name]) => [name, kind]));
  return [...seen].flatMap(([name, kind]) => {
    if (GROWING.includes(name)) return membersOf(text, name);
    if (OF_GROWING.includes(name))
      return [{ name, type: `Fits<typeof Ours.${name}, typeof Theirs.${name}>` }];
    if (kind === "function" || kind === "const")
      return [alike(name, `typeof Ours.${name}`, `typeof Theirs.${name}`)];
    if (kind === "class") return [likeClass(name)];
    return [alike(name, `Ours.${generic(name)}`, `Theirs.${generic(name)}`)];
  });
}

const generic = (name) => (ARGUMENTS[name] === undefined ? name : `${name}<${ARGUMENTS[name]}>`);

const alike = (name, ours, theirs) => ({ name, type: `[${fitting(ours, theirs)}]` });

// Assignable both ways says nothing of an optional member that ours lacks: `Whole` makes all of them required.
const fitting = (ours, theirs) =>
  `Fits<${ours}, ${theirs}>, Fits<${theirs}, ${ours}>, Fits<Whole<${ours}>, Whole<${theirs}>>`;

// A constructor of ours is an addition, and free; the instance and the static side must agree.
const likeClass = (name) => ({
  name,
  type: `[${fitting(`Ours.${name}`, `Theirs.${name}`)}, Fits<typeof Ours.${name}, Omit<typeof Theirs.${name}, "prototype">>]`,
});

function membersOf(text, name) {
  const { bases, body } = interfaceOf(text, name);
  const inherited = bases.map((base) => ({
    name: `${name} extends ${base}`,
    type: `Fits<Ours.${generic(name)}, ${inOurs(text, base)}>`,
  }));
  const picked = (side, member) => `Pick<${side}.${generic(name)}, "${member}">`;
  return [
    ...inherited,
    ...memberNames(body).map((member) =>
      alike(`${name}.${member}`, picked("Ours", member), picked("Theirs", member)),
    ),
  ];
}

// A base is one of our own interfaces, or one of the language's over a type of ours.
const inOurs = (text, base) =>
  new RegExp(`^export interface ${base.match(/\w+/)[0]}\\b`, "m").test(text)
    ? `Ours.${base}`
    : base.replace(/<(\w+)>/, "<Ours.$1>");

function interfaceOf(text, name) {
  const start = text.search(new RegExp(`^export interface ${name}\\b`, "m"));
  const head = text.slice(start).match(/^export interface \w+(?:<.*?>)?(?: extends ([^{]+?))? \{/);
  if (!head)
    throw problem(
      `The contract has no interface ${name} that can be read: see tests/contract/api.mjs.`,
    );
  const bases = (head[1] ?? "").split(/,\s*/).filter(Boolean);
  return { bases, body: bodyAt(text, start + head[0].length) };
}

/** The text up to the brace that closes the one before `start`. */
function bodyAt(text, start) {
  let depth = 1;
  for (let index = start; index < text.length; index++) {
    depth += { "{": 1, "}": -1 }[text[index]] ?? 0;
    if (depth === 0) return text.slice(start, index);
  }
  throw problem("The contract has an interface that does not end.");
}

/** The names of an interface's own members, each once: what stands where no bracket is open. */
function memberNames(body) {
  const plain = body
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\/\/.*$/gm, "")
    .replace(/=>/g, "");
  let depth = 0;
  let flat = "";
  for (const char of plain) {
    if ("}])>".includes(char)) depth -= 1;
    if (depth === 0) flat += char;
    if ("{[(<".includes(char)) depth += 1;
  }
  const names = flat
    .split(/[;\n]/)
    .map((member) => member.match(/^\s*(?:readonly )?(\w+)\??\s*[:(<]/)?.[1]);
  return [...new Set(names.filter(Boolean))];
}

/** Both sides and the assertions, one a line, as files for the compiler. */
function write(text, dist, assertions) {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "theirs.d.ts"), openBrands(text));
  for (const name of fs.readdirSync(dist, { recursive: true })) {
    if (!name.endsWith(".d.ts")) continue;
    const file = path.join(folder, "ours", name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, openBrands(fs.readFileSync(path.join(dist, name), "utf8")));
  }
  const lines = assertions.map(({ type }, index) => `export type A${index} = ${type};`);
  fs.writeFileSync(path.join(folder, "check.ts"), [...lines, HELP].join("\n"));
  fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(CONFIG, null, 2));
}

// A unique symbol is itself only: a brand made of one would keep equal types apart.
const openBrands = (text) => text.replace(/readonly \[opaque\]:/g, "readonly __opaque:");

const HELP = `
import type * as Ours from "./ours/index.js";
import type * as Theirs from "./theirs.js";
type Fits<A extends B, B> = A;
type Whole<T> = 0 extends 1 & T
  ? T
  : T extends (...args: infer A) => infer R
    ? { readonly takes: Whole<A>; readonly gives: Whole<R> }
    : T extends Promise<infer V>
      ? { readonly promised: Whole<V> }
      : T extends AbortSignal | Uint8Array | ReadableStream | Response
        ? T
        : T extends object
          ? { [K in keyof T]-?: Whole<T[K]> }
          : T;
type Sample = {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: { city: string }; readonly output: { city: string } };
    readonly jsonSchema: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
};
`;

const CONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: "ES2022",
    lib: ["ES2023", "DOM", "DOM.Iterable", "ESNext.Disposable"],
    module: "ESNext",
    moduleResolution: "bundler",
    types: [],
  },
  files: ["check.ts"],
};

/** The numbers of the assertions that the compiler refuses. */
async function complaintsOfCompiler(nAssertions) {
  const tsc = inRoot("node_modules/typescript/bin/tsc");
  const { output } = await capture(process.execPath, [tsc, "-p", folder, "--pretty", "false"]);
  const errors = [...output.matchAll(/^(.+?)\((\d+),\d+\): error (TS\d+): (.*)$/gm)];
  const lines = errors.map(([whole, file, line]) => {
    const index = Number(line) - 1;
    if (path.basename(file) === "check.ts" && index < nAssertions) return index;
    throw problem("The comparison itself does not compile.", whole);
  });
  if (output.includes("error TS") && errors.length === 0)
    throw problem("The comparison itself does not compile.", output);
  return new Set(lines);
}

await main(import.meta.url, async () => {
  if (!fs.existsSync(contract)) {
    console.log(`There is no contract at ${contract}, so nothing is compared.`);
    return 0;
  }
  await buildTypes();
  const found = await compare();
  console.log(`${found.agreed.length} names agree with the contract; not yet whole, or missing:`);
  for (const name of found.lacking) console.log(`  ${name}`);
  const complaints = judge(found, pendingNames());
  for (const complaint of complaints) console.error(complaint);
  return complaints.length > 0 ? 1 : 0;
});
