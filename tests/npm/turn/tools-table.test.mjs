// The table of built-in tools and the tests of each: printed, and no cell is empty without a reason.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";

const COLUMNS = ["normal use", "refusal", "after a restart", "after a compaction", "second process or tab", "wrong arguments"];
const table = JSON.parse(fs.readFileSync(inRoot("tests/npm/turn/tools-table.json"), "utf8"));
const sources = new Map();

/** The text of a test file by name. Each file is read once. */
function sourceOf(file) {
  if (!sources.has(file)) sources.set(file, fs.readFileSync(inRoot("tests/npm", file), "utf8"));
  return sources.get(file);
}

test("every built-in tool for long tasks has a test for each of six situations, or a reason for its absence", () => {
  for (const [tool, row] of Object.entries(table)) {
    assert.deepEqual(Object.keys(row), COLUMNS, tool);
    console.log(`\n${tool}`);
    for (const [column, cell] of Object.entries(row)) {
      const isReason = typeof cell === "string";
      console.log(`  ${column.padEnd(23)}${isReason ? `none: ${cell}` : cell.join(": ")}`);
      if (isReason) {
        assert.ok(cell.length > 20, `${tool}, ${column}: say why there is no test`);
        continue;
      }
      const [file, name] = cell;
      assert.match(sourceOf(file), new RegExp(`\\b(story|relay|beside|test)\\(\\s*${quoted(name)}`), `${tool}, ${column}: ${file} has no such test`);
    }
  }
});

test("every built-in tool for long tasks is in the table", () => {
  const engine = ["todo.rs", "skill.rs", "plan.rs"].map((file) => fs.readFileSync(inRoot("src/tool", file), "utf8")).join("\n");
  const names = [...engine.matchAll(/"((?:todo|plan|load)_[a-z]+)"/g)].map(([, name]) => name);
  assert.deepEqual([...new Set(names)].sort(), ["load_skill", "plan_enter", "plan_exit", "plan_write", "todo_write"]);
  const ofChildren = JSON.parse(fs.readFileSync(inRoot("src/tool/subagents.json"), "utf8"));
  assert.equal(ofChildren.length, 7);
  for (const name of [...names, ...ofChildren.map(({ name }) => name)]) assert.ok(name in table, name);
});

function quoted(name) {
  return JSON.stringify(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
