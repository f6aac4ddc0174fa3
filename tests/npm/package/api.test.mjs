// The public surface of the packed package is the one in tests/contract/api-report.md, and the report shows every change.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { apiReport, changedLines, entryPoints, reportFile, staleReport } from "../../../src/build/api.mjs";
import { project } from "../support/project.mjs";

const packedDist = async () => path.join(await project(), "node_modules/lockgate/dist");

test("the public types of the packed package are those of the API report", async () => {
  assert.equal(staleReport(await packedDist()), null);
});

test("the API report has a section for every entry point with types", () => {
  const report = fs.readFileSync(reportFile, "utf8");
  const named = [...report.matchAll(/^## `(.+)`$/gm)].map(([, name]) => name);
  assert.deepEqual(named, entryPoints().map(({ name }) => name));
});

test("the API report changes if a type changes, is removed, or loses an optional member", async () => {
  const changed = path.join(await project(), "changed");
  fs.cpSync(await packedDist(), changed, { recursive: true });
  change(changed, "readonly data: string", "readonly data: number");
  change(changed, "readonly queueLimit?: number", "readonly queueLimit: number");
  change(changed, "readonly topP?: number;", "");
  change(changed, '| "length"', "");
  change(changed, "export { textOf }", "export { textOf as textFrom }");
  const shown = changedLines(fs.readFileSync(reportFile, "utf8"), apiReport(changed)).join("\n");
  for (const [declaration, before, after] of [
    ["export interface AgentOptions", "-   readonly queueLimit?: number;", "+   readonly queueLimit: number;"],
    ["export interface GenerateOptions", "-   readonly topP?: number;"],
    ["export type Source", "-   readonly data: string;", "+   readonly data: number;"],
    ["", "- export function textOf", "+ export { textOf as textFrom };"],
  ])
    for (const line of [declaration, before, after ?? before]) assert.ok(shown.includes(line), `${line} is not in:\n${shown}`);
  assert.match(shown, /^- .*"length"/m);
  assert.ok(!shown.includes("interface Slot") && !shown.includes("ErrorCode"));
});

test("the API report does not depend on which file of the package declares a type", async () => {
  const moved = path.join(await project(), "moved");
  fs.cpSync(await packedDist(), moved, { recursive: true });
  const file = fileWith(moved, "export interface ContextReport");
  const place = path.join(path.dirname(file), "moved-types.d.ts");
  fs.renameSync(file, place);
  const name = path.basename(file, ".d.ts");
  for (const each of declarationsOf(moved)) fs.writeFileSync(each, fs.readFileSync(each, "utf8").replaceAll(`/${name}.js"`, '/moved-types.js"'));
  assert.deepEqual(changedLines(apiReport(await packedDist()), apiReport(moved)), []);
});

const declarationsOf = (dist) =>
  fs.readdirSync(dist, { recursive: true }).filter((name) => name.endsWith(".d.ts")).map((name) => path.join(dist, name));

function fileWith(dist, text) {
  const file = declarationsOf(dist).find((each) => fs.readFileSync(each, "utf8").includes(text));
  assert.ok(file, `no declaration file has ${text}`);
  return file;
}

function change(dist, from, to) {
  fileWith(dist, from);
  for (const file of declarationsOf(dist)) fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(from, to));
}
