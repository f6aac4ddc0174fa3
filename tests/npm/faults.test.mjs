// tests/faults.md tells the truth: every test it names is there, and its counts are right.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { inRoot } from "../../src/build/run.mjs";

const table = fs.readFileSync(inRoot("tests/faults.md"), "utf8");
const rows = [...table.matchAll(/^\| ([A-Z]-?\d+) \| [^|]* \| (.*) \|$/gm)].map(([, id, state]) => ({ id, state }));

/** What a row names: each test with the file it is in. A name may be of many tests, with `<…>` for what differs. */
const namedIn = (state) =>
  [...state.matchAll(/([\w./-]+\.(?:rs|mjs)): ((?:`[^`]+`(?:, )?)+)/g)].flatMap(([, file, names]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => ({ file, name: name.replace(/^<[^>]*>:? ?/, "") })),
  );

test("every test that tests/faults.md names is in the file it says", () => {
  const named = rows.flatMap(({ id, state }) => namedIn(state).map((each) => ({ id, ...each })));
  assert.ok(rows.length > 290 && named.length > 300);
  const texts = new Map(named.map(({ file }) => [file, fs.existsSync(inRoot("tests", file)) ? fs.readFileSync(inRoot("tests", file), "utf8") : ""]));
  assert.deepEqual(named.filter(({ file, name }) => !texts.get(file).includes(name)).map(({ id, file, name }) => `${id}: ${file}: ${name}`), []);
});

test("a row says which test proves it, what is missing, or why it does not apply", () => {
  const empty = rows.filter(({ state }) => !/^(open|not applicable)/.test(state) && namedIn(state).length === 0);
  assert.deepEqual(empty, []);
});

test("the counts at the end of tests/faults.md are those of its rows", () => {
  const kind = (state) => /^(partly|open|not applicable)/.exec(state)?.[0] ?? "covered";
  const counted = (isOne) => {
    const kinds = rows.filter(({ id }) => isOne(id)).map(({ state }) => kind(state));
    return `${["covered", "partly", "open", "not applicable"].map((each) => `${kinds.filter((one) => one === each).length} ${each}`).join(", ")} (of ${kinds.length})`;
  };
  const line = `Counts: faults ${counted((id) => id.includes("-"))}; behaviours ${counted((id) => !id.includes("-"))}.`;
  assert.ok(table.includes(line), line);
});
