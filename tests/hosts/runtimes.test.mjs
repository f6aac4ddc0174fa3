// The scenario in the runtimes that npm packages bring: versions of Node, Deno and Bun. A killed process takes the place of a reload.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../../src/build/run.mjs";
import { cell, folderWith, tool } from "../packaging/kit.mjs";

const runtimes = [
  { name: "Node", from: "node-20", program: "bin/node" },
  { name: "Node", from: "node-22", program: "bin/node" },
  { name: "Node", from: "node-24", program: "bin/node" },
  { name: "Deno", from: "@deno/linux-x64-glibc", program: "deno", args: ["run", "--allow-all"] },
  { name: "Bun", from: "@oven/bun-linux-x64", program: "bin/bun" },
];

const program = `
  import * as lockgate from "lockgate";
  import { fileStore } from "lockgate/stores/node";
  import * as scenario from "./scenario.mjs";
  const [phase, folder] = globalThis.Deno?.args ?? process.argv.slice(2);
  const results = await scenario[phase](lockgate, { storage: /files/, store: () => fileStore(folder) });
  console.log("results " + JSON.stringify(results));
`;

const skipOf = ({ from, program }) => (fs.existsSync(tool(from, program)) ? false : "npm has this runtime for Linux on x64 only");
const versionOf = ({ from }) => JSON.parse(fs.readFileSync(tool(from, "package.json"), "utf8")).version.replace(/^v/, "");

/** Runs a part of the scenario, and kills the process when it has printed the results. */
async function results({ from, program, args = [] }, folder, phase) {
  const child = spawn(tool(from, program), [...args, "main.mjs", phase, path.join(folder, "store")], { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NODE_OPTIONS: "" } });
  const ended = once(child, "close");
  let output = "";
  const found = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
        const line = /^results (.*)\n/m.exec(output);
        if (line) resolve(JSON.parse(line[1]));
      });
    }
  });
  try {
    const steps = await Promise.race([found, ended.then(() => null)]);
    assert.ok(steps, `${from} ended without results:\n${output}`);
    return steps;
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

for (const each of runtimes) {
  const skip = skipOf(each);
  cell(skip ? `${each.name} (${each.from})` : `${each.name} ${versionOf(each)}`, "scenario", async () => {
    const scenario = fs.readFileSync(inRoot("tests/hosts/scenario.mjs"), "utf8");
    const folder = await folderWith({ "scenario.mjs": scenario, "main.mjs": program });
    const steps = [...(await results(each, folder, "before")), ...(await results(each, folder, "after"))];
    assert.deepEqual(steps.filter(({ error }) => error !== null), []);
    return `${steps.length} steps`;
  }, { skip });
}
