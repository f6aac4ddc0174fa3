// The API report: every name that the package exports, with its type as the compiler prints it. `npm run api` writes it.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { API } from "typescript/unstable/sync";
import { SyntaxKind } from "typescript/unstable/ast";
import { buildTypes } from "./build.mjs";
import { inRoot, main, problem } from "./run.mjs";

/** The report in the repository. */
export const reportFile = inRoot("tests/contract/api-report.md");

const INTRODUCTION = `# API report

The public surface of the package as the TypeScript compiler prints it, one section per entry point.
\`npm run api\` writes this file. \`npm run check\` fails if the package and this file differ, so a review shows every change of the public surface.
`;

/** A problem with a diff if the report in the repository is out of date; else null. */
export function staleReport(dist = inRoot("dist")) {
  const stored = fs.existsSync(reportFile) ? fs.readFileSync(reportFile, "utf8") : "";
  const changes = changedLines(stored, apiReport(dist));
  if (changes.length === 0) return null;
  const advice = "The public surface has changed. If this is intended, run `npm run api` and commit tests/contract/api-report.md.";
  return problem(advice, changes.join("\n"));
}

/** The report of the declarations in `dist`, found by the entry points in package.json. */
export function apiReport(dist = inRoot("dist")) {
  return withPublicNames(dist, ({ entries, hidden }) => {
    const sections = entries.map(({ name, own, others }) => section(`\`${name}\``, [...others, ...own.map(({ text }) => text)]));
    const reached = hidden.map(({ text }) => text);
    return [INTRODUCTION, ...sections, section("Not exported, but used by the types above", reached)].join("\n");
  });
}

const section = (title, declarations) => `## ${title}\n\n\`\`\`ts\n${declarations.join("\n\n")}\n\`\`\`\n`;

/** The entry points of the package that have types: name and file below `dist`. */
export function entryPoints() {
  const { name, exports } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => target.types !== undefined)
    .map(([subpath, { types }]) => ({ name: path.posix.join(name, subpath), types: path.relative("dist", types) }));
}

/**
 * Calls `use` with the exports of each entry point (`own`: names that no earlier entry point exports; `others`: lines for the other
 * names), with the declarations that these exports use but that no entry point exports (`hidden`), and with the compiler's project.
 */
export function withPublicNames(dist, use) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-api-"));
  const api = new API({ cwd: inRoot() });
  try {
    const project = openProject(api, folder, dist);
    return use({ ...publicNames(project, dist), project });
  } finally {
    api.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function openProject(api, folder, dist) {
  const config = path.join(folder, "tsconfig.json");
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    target: "ES2022",
    lib: ["ES2023", "DOM", "DOM.Iterable", "ESNext.Disposable"],
    module: "nodenext",
    types: ["node"],
    typeRoots: [inRoot("node_modules/@types")],
  };
  const files = entryPoints().map(({ types }) => path.join(dist, types));
  fs.writeFileSync(config, JSON.stringify({ compilerOptions, files }));
  const project = api.updateSnapshot({ openProject: config }).getProjects()[0];
  const [wrong] = project.program.getSyntacticDiagnostics();
  if (wrong) throw problem(`The declarations in ${dist} do not compile.`, wrong.text);
  return project;
}

function publicNames(project, dist) {
  const { checker, program } = project;
  const isOurs = (handle) => handle.path.startsWith(fs.realpathSync(dist) + path.sep) || handle.path.startsWith(dist + path.sep);
  const resolved = (symbol) => (isAlias(symbol) ? checker.getAliasedSymbol(symbol) : symbol);
  const seen = new Map();
  const entries = entryPoints().map(({ name, types }) => {
    const file = program.getSourceFile(path.join(dist, types));
    if (!file) throw problem(`${types} is missing in ${dist}: package.json names it as the types of ${name}.`);
    const exported = byName(checker.getExportsOfModule(checker.getSymbolAtLocation(file)));
    const own = [];
    const again = new Map();
    for (const alias of exported) {
      const symbol = resolved(alias);
      const first = seen.get(symbol.id);
      if (first === undefined) {
        seen.set(symbol.id, { entry: name, name: alias.name });
        own.push({ name: alias.name, symbol, text: exportedText(project, alias.name, symbol) });
      } else again.set(first.entry, [...(again.get(first.entry) ?? []), first.name === alias.name ? alias.name : `${first.name} as ${alias.name}`]);
    }
    return { name, own, others: [...again].map(([from, names]) => `export {\n${names.map((each) => `  ${each},\n`).join("")}} from "${from}";`) };
  });
  return { entries, hidden: hiddenNames(project, entries, { seen, isOurs, resolved }) };
}

const isAlias = (symbol) => symbol.declarations.some(({ kind }) => ALIASES.includes(kind));
const ALIASES = [SyntaxKind.ExportSpecifier, SyntaxKind.ImportSpecifier, SyntaxKind.NamespaceExport, SyntaxKind.NamespaceImport, SyntaxKind.ImportClause];
const byName = (symbols) => [...symbols].sort((one, other) => (one.name < other.name ? -1 : 1));

/** Declarations of the package that exported ones use, but that are not exported themselves. */
function hiddenNames(project, entries, { seen, isOurs, resolved }) {
  const known = new Set(seen.keys());
  const found = [];
  const queue = entries.flatMap(({ own }) => own.map(({ symbol }) => symbol));
  for (let symbol = queue.shift(); symbol !== undefined; symbol = queue.shift()) {
    const names = symbol.declarations.filter(isOurs).flatMap((handle) => identifiersOf(handle.resolve()));
    if (names.length === 0) continue;
    for (const each of project.checker.getSymbolAtLocation(names)) {
      if (each === undefined) continue;
      const target = resolved(each);
      if (known.has(target.id) || !target.declarations.some((handle) => isOurs(handle) && TOP_LEVEL.includes(handle.kind))) continue;
      if (!target.declarations.some((handle) => isTopLevel(handle.resolve()))) continue;
      known.add(target.id);
      found.push({ name: target.name, symbol: target, text: declarationText(project, target) });
      queue.push(target);
    }
  }
  return found.sort((one, other) => (one.text < other.text ? -1 : 1));
}

const TOP_LEVEL = [
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.ClassDeclaration,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.VariableDeclaration,
];

function isTopLevel(node) {
  const statement = node.kind === SyntaxKind.VariableDeclaration ? node.parent.parent : node;
  return statement.parent?.kind === SyntaxKind.SourceFile;
}

function identifiersOf(node) {
  if (node.kind === SyntaxKind.Identifier) return [node];
  const found = [];
  node.forEachChild((child) => void found.push(...identifiersOf(child)));
  return found;
}

const exportedText = (project, name, symbol) =>
  symbol.name === name ? `export ${declarationText(project, symbol)}` : `export { ${symbol.name} as ${name} };\n${declarationText(project, symbol)}`;

/** All declarations of a name without comments, `export` and `declare`. */
function declarationText(project, symbol) {
  const texts = symbol.declarations.map((handle) => {
    const text = project.emitter.printNode(handle.resolve()).replace(/^(export |default |declare )*/, "");
    return handle.kind === SyntaxKind.VariableDeclaration ? `const ${text};` : text;
  });
  return texts.join("\n").replaceAll("    ", "  ");
}

/** The lines that differ, with `-` for lines of `before` and `+` for lines of `after`. Each group stands below its heading. */
export function changedLines(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const common = longestCommon(old, now);
  const shown = [];
  let [i, j, heading] = [0, 0, ""];
  const show = (line) => {
    if (heading !== "") shown.push(heading);
    heading = "";
    shown.push(line);
  };
  for (const line of [...common, undefined]) {
    while (i < old.length && old[i] !== line) show(`- ${old[i++]}`);
    while (j < now.length && now[j] !== line) show(`+ ${now[j++]}`);
    if (line !== undefined && /^(## |export |interface |type |class |function |const )/.test(line)) heading = `  ${line}`;
    i += 1;
    j += 1;
  }
  return shown;
}

function longestCommon(old, now) {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      rows[i][j] = old[i] === now[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
  const common = [];
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      common.push(old[i]);
      i += 1;
      j += 1;
    } else if (rows[i + 1][j] >= rows[i][j + 1]) i += 1;
    else j += 1;
  }
  return common;
}

await main(import.meta.url, async () => {
  await buildTypes();
  fs.writeFileSync(reportFile, apiReport());
  console.log(`${path.relative(inRoot(), reportFile)} is written.`);
  return 0;
});
