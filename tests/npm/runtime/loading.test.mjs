// Loading the wasm in Node where the file beside the package is lost, old or cut off.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { project, run } from "../support/project.mjs";

/** The output of a program that calls an agent of a copy of the package, after `change(dist)` has changed the copy. */
async function saidWith(change) {
  const copy = path.join(await project(), `copy-${process.hrtime.bigint()}`);
  fs.cpSync(path.join(await project(), "node_modules/lockgate"), copy, { recursive: true });
  change(path.join(copy, "dist"));
  const { stdout, stderr, code } = await run(`
    import { createAgent, demoModel, memoryStore } from ${JSON.stringify(pathToFileURL(path.join(copy, "dist/entry/node.js")).href)};
    const said = createAgent({ name: "helper", model: demoModel(), store: memoryStore() }).then(
      async (agent) => (await agent.call("Hello", { sessionId: "s" })).text,
      ({ code, message, hint }) => [code, message, hint].join("\\n"),
    );
    console.log(await said);
  `);
  assert.equal(code, 0, stderr);
  return { said: stdout, file: path.join(copy, "dist/core.wasm") };
}

const wasmOf = (dist) => path.join(dist, "core.wasm");
const lose = (dist) => fs.rmSync(wasmOf(dist));
const loseCopy = (dist) => fs.rmSync(path.join(dist, "inline-wasm.js"));
const cutOff = (dist) => fs.truncateSync(wasmOf(dist), 100_000);
const age = (dist) => {
  const bytes = fs.readFileSync(wasmOf(dist));
  // The seal is at the end of the file.
  // Another hexadecimal digit, so that the changed seal still has the form of a seal.
  bytes[bytes.length - 1] = bytes.at(-1) === 0x30 ? 0x31 : 0x30;
  fs.writeFileSync(wasmOf(dist), bytes);
};
const both = (one, other) => (dist) => (one(dist), other(dist));

for (const [how, change] of [["is lost", lose], ["is cut off", cutOff], ["is of another build", age]]) {
  test(`V-12, V-13: in Node, where the wasm file ${how}, the copy inside the package takes its place`, async () => {
    assert.match((await saidWith(change)).said, /“Hello”/);
  });
}

test("V-12: in Node, if file and copy are lost, ENGINE_LOAD names the file", async () => {
  const { said, file } = await saidWith(both(lose, loseCopy));
  assert.match(said, /^ENGINE_LOAD\n/);
  assert.ok(said.includes(file), said);
});

test("V-13: in Node a wasm of another build is refused with the names of both builds if there is no copy", async () => {
  const { said, file } = await saidWith(both(age, loseCopy));
  assert.match(said, /^ENGINE_LOAD\nthe wasm is of build [\d.]+-\w{16}, and this JavaScript of build [\d.]+-\w{16}/);
  assert.ok(said.includes(file), said);
});
