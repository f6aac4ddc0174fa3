// Builds the package and measures it: `npm run bench [-- arguments of benches/bench.mjs]`.
import { spawn } from "node:child_process";
import process from "node:process";
import { build } from "./build.mjs";
import { inRoot, main, root } from "./run.mjs";

await main(import.meta.url, async (args) => {
  await build();
  const child = spawn(process.execPath, [inRoot("benches/bench.mjs"), ...args], {
    cwd: root,
    stdio: "inherit",
  });
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
});
