// The declarations of the packed package, compiled as a user's project does: with a bundler's rules and with Node's.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { capture, inRoot } from "../../../src/build/run.mjs";
import { lend, project } from "../support/project.mjs";

const source = fs.readFileSync(inRoot("tests/npm/package/types.test-d.ts"), "utf8");

const base = { strict: true, noEmit: true, target: "ES2022", skipLibCheck: false, types: [] };
// The smallest library with which the package compiles.
const inPage = ["ES2022", "DOM"];

/** Compiles a text in the project. Returns the errors, one per line. */
async function compiled(text, name, compilerOptions) {
  return (await output(text, name, compilerOptions)).match(/^.*error TS.*$/gm) ?? [];
}

/** Compiles a text in the project. Returns what the compiler prints. */
async function output(text, name, compilerOptions) {
  const folder = path.join(await project(), `types-${process.hrtime.bigint()}`);
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, name), text);
  const config = { compilerOptions: { ...base, ...compilerOptions }, files: [name] };
  fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = inRoot("node_modules/typescript/bin/tsc");
  return (await capture(process.execPath, [tsc, "-p", folder, "--pretty", "false"])).output;
}

const settings = {
  "with a bundler": ["user.ts", { module: "ESNext", moduleResolution: "bundler", lib: inPage }],
  "with Node's rules": [
    "user.mts",
    { module: "nodenext", moduleResolution: "nodenext", lib: inPage },
  ],
  "with exact optional properties": [
    "user.ts",
    {
      module: "ESNext",
      moduleResolution: "bundler",
      lib: inPage,
      exactOptionalPropertyTypes: true,
    },
  ],
  "in Node without the types of a page": [
    "user.mts",
    {
      module: "nodenext",
      moduleResolution: "nodenext",
      lib: ["ES2022"],
      types: ["node"],
      typeRoots: [inRoot("node_modules/@types")],
    },
  ],
};

for (const [where, [name, options]] of Object.entries(settings)) {
  test(`the types infer, narrow and refuse as they should ${where}`, async () => {
    assert.deepEqual(await compiled(source, name, options), []);
  });
}

test("the stores accept the types of common clients", async () => {
  await lend("ioredis", "mysql2", "redis");
  const [name, options] = settings["in Node without the types of a page"];
  const stores = fs.readFileSync(inRoot("tests/npm/stores/stores.test-d.ts"), "utf8");
  // The declarations of the clients themselves are not checked.
  assert.deepEqual(await compiled(stores, name, { ...options, skipLibCheck: true }), []);
});

test("a worker, its clients and a chat have the expected types", async () => {
  const edge = fs.readFileSync(inRoot("tests/npm/edge/edge.test-d.ts"), "utf8");
  for (const where of ["with a bundler", "with Node's rules", "in Node without the types of a page"]) {
    const [name, options] = settings[where];
    assert.deepEqual(await compiled(edge, name, options), [], where);
  }
});

test("for a schema without JSON Schema, such as one of Zod 3, the compiler says what to do", async () => {
  const [name, options] = settings["with a bundler"];
  const old = `import { tool } from "lockgate";
declare const old: { readonly "~standard": { readonly version: 1; readonly vendor: string; readonly validate: (value: unknown) => unknown }; parse(value: unknown): unknown };
tool({ name: "clock", description: "Tells the time.", inputSchema: old });
`;
  assert.match(await output(old, name, options), /"This schema cannot be turned into JSON Schema: update its library \(Zod 4\.2,/);
});

test("the type test fails on a mistake in the types", async () => {
  const [name, options] = settings["with a bundler"];
  const wrong = `${source}\nholds<Same<typeof reply.text, number>>();\n// @ts-expect-error nothing is wrong here\nreply.text;\n`;
  const errors = await compiled(wrong, name, options);
  assert.equal(errors.length, 2, errors.join("\n"));
});
