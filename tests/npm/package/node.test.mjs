// The packed package in Node: its files, and a program that uses it, from start to end.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { project, printed, run, story, tarball } from "../support/project.mjs";

const installed = async () => path.join(await project(), "node_modules/lockgate");
const manifest = async () =>
  JSON.parse(fs.readFileSync(path.join(await installed(), "package.json"), "utf8"));

test("the package has no dependencies and runs no install scripts", async () => {
  const {
    dependencies,
    peerDependencies,
    optionalDependencies,
    bundleDependencies,
    scripts,
    gypfile,
  } = await manifest();
  const drags = {
    dependencies,
    peerDependencies,
    optionalDependencies,
    bundleDependencies,
    gypfile,
  };
  assert.deepEqual(
    Object.entries(drags).filter(([, value]) => value !== undefined),
    [],
  );
  const atInstall = [
    "preinstall",
    "install",
    "postinstall",
    "prepare",
    "preprepare",
    "postprepare",
  ];
  assert.deepEqual(
    Object.keys(scripts ?? {}).filter((name) => atInstall.includes(name)),
    [],
  );
  const neighbours = fs.readdirSync(path.join(await project(), "node_modules"));
  assert.deepEqual(
    neighbours.filter((name) => !name.startsWith(".")),
    ["lockgate"],
  );
});

test("the tarball holds dist, the documentation, the readme and its pictures, the licence, the changelog and llms.txt, and nothing else", async () => {
  const listing = await printed("tar", ["-tzf", await tarball()]);
  const files = listing
    .trim()
    .split("\n")
    .map((name) => name.replace(/^package\//, ""));
  const top = new Set(files.map((name) => name.split("/")[0]));
  const wanted = ["CHANGELOG.md", "LICENSE", "README.md", "benches", "dist", "llms.txt", "package.json", "www"];
  assert.deepEqual([...top].sort(), wanted);
  const strangers = files.filter(
    (name) => name.startsWith("dist/") && !/\.(js|d\.ts|wasm)$/.test(name),
  );
  assert.deepEqual(strangers, []);
  assert.deepEqual(files.filter((name) => name.startsWith("benches/")), ["benches/results.svg"]);
});

test("every file named in the exports is in the tarball", async () => {
  const targets = (entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry).flatMap(targets);
  const named = Object.values((await manifest()).exports).flatMap(targets);
  const folder = await installed();
  assert.ok(named.length > 5);
  assert.deepEqual(
    named.filter((file) => !fs.existsSync(path.join(folder, file))),
    [],
  );
});

test("a program that imports the package gets an answer", async () => {
  const { stdout, stderr, code } = await run(`
    import { createAgent, demoModel } from "lockgate";
    const agent = await createAgent({ name: "helper", model: demoModel() });
    const reply = await agent.call("Hello there", { sessionId: "s1" });
    console.log(JSON.stringify({ name: agent.name, reply, history: await agent.history({ sessionId: "s1" }) }));
  `);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  const { name, reply, history } = JSON.parse(stdout);
  assert.equal(name, "helper");
  assert.equal(reply.reason, "stop");
  assert.match(reply.text, /demo model/);
  assert.match(reply.text, /“Hello there”/);
  assert.deepEqual(history, reply.messages);
});

// Node 20.19 and 22.12 and later load ES modules with `require`; older ones say so with a code of their own.
test("a program that requires the package gets an answer if Node can require ES modules", async () => {
  const { stdout, stderr, code } = await run(
    `
    const { createAgent, demoModel } = require("lockgate");
    (async () => {
      const agent = await createAgent({ name: "helper", model: demoModel() });
      console.log((await agent.call("Hello", { sessionId: "s1" })).text);
    })();
  `,
    { extension: "cjs" },
  );
  if (!process.features.require_module) {
    assert.notEqual(code, 0);
    assert.match(stderr, /ERR_REQUIRE_ESM/);
    return;
  }
  assert.equal(code, 0, stderr);
  assert.match(stdout, /demo model/);
});

test("two copies of the module know each other's errors", async () => {
  const { stdout, stderr, code } = await run(`
    import { createAgent, LockgateError } from "lockgate";
    const errors = await import(new URL("../errors.js?again", import.meta.resolve("lockgate")).href);
    const error = await createAgent({}).catch((error) => error);
    console.log(error instanceof errors.LockgateError, errors.LockgateError.isInstance(error));
    console.log(LockgateError.isInstance(error), LockgateError.isInstance(new Error("no")), LockgateError.isInstance(null));
  `);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "false true\ntrue false false\n");
});

story(
  "nothing happens before the first call: no timer and no random number",
  async ({ createAgent, demoModel, assert }) => {
    const forbidden = (name) => () => assert.fail(`${name} was used before the first call`);
    const { setTimeout, setInterval, setImmediate } = globalThis;
    Object.assign(globalThis, {
      setTimeout: forbidden("setTimeout"),
      setInterval: forbidden("setInterval"),
      setImmediate: forbidden("setImmediate"),
    });
    const random = crypto.getRandomValues;
    crypto.getRandomValues = forbidden("getRandomValues");
    Math.random = forbidden("Math.random");
    const agent = await createAgent({ name: "helper", model: demoModel() });
    Object.assign(globalThis, { setTimeout, setInterval, setImmediate });
    crypto.getRandomValues = random;
    assert.equal((await agent.call("Hello", { sessionId: "s" })).reason, "stop");
  },
);

test("a program exits by itself when its calls are done", async () => {
  const { stdout, lingered, code, stderr } = await run(`
    import { createAgent, demoModel } from "lockgate";
    const agent = await createAgent({ name: "helper", model: demoModel({ delayMs: 1 }) });
    const calls = Array.from({ length: 10 }, (_, n) => agent.call("Hello", { sessionId: "s" + (n % 3) }));
    await Promise.all(calls);
    for await (const event of agent.stream("a long answer", { sessionId: "s1" })) if (event.type === "text-delta") break;
    process.stdout.write("\\n--- done ---\\n");
  `);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /done/);
  assert.ok(!lingered, "a timer or a handle kept it alive");
});

test("a failed call that is not awaited leaves no unhandled rejection", async () => {
  const { stdout, stderr, code } = await run(`
    import { createAgent, customModel } from "lockgate";
    const model = customModel({ id: "broken", async *generate() { throw new Error("no"); } });
    const agent = await createAgent({ name: "helper", model });
    agent.stream("Hello", { sessionId: "s" });
    agent.stream(undefined, { sessionId: "s" });
    await agent.stream("Hello", { sessionId: "s" }).result.catch((error) => console.log(error.code));
  `);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "MODEL_FAILED\n");
});
