// Builds the package and measures it and other engines: `npm run bench [-- arguments of benches/bench.mjs]`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import process from "node:process";
import { build } from "./build.mjs";
import { capture, inRoot, main, must, npmCommand, root, step } from "./run.mjs";
import { prepare } from "./setup/setup.mjs";

const folder = inRoot("benches");

await main(import.meta.url, async (args) => {
  await build();
  await installOtherEngines();
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  // Without Chromium the rows about pages are reported as failed.
  if (!chromium) console.error(chromiumMissing);
  const child = spawn(process.execPath, [inRoot("benches/bench.mjs"), ...args], {
    cwd: root,
    env: { ...process.env, ...(chromium && { CHROMIUM: chromium }) },
    stdio: "inherit",
  });
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
});

// The other engines are installed in the folder of the benchmarks, so the package itself never depends on them.
async function installOtherEngines() {
  const stamp = inRoot("benches/node_modules/.lockgate-lock");
  const lock = fs.readFileSync(inRoot("benches/package-lock.json"));
  const wanted = createHash("sha256").update(lock).digest("hex");
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === wanted) return;
  const [npm, ...first] = npmCommand();
  await step("Installing the other engines (some minutes, once)", (show) =>
    must(npm, [...first, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: folder,
      show,
      advice: "npm could not install the other engines: check the network and run this again.",
    }),
  );
  await buildSqlite([npm, ...first]);
  fs.writeFileSync(stamp, wanted);
}

// The only package without a prebuilt binary. Without it the rows about LangGraph with SQLite are reported as failed.
async function buildSqlite([npm, ...first]) {
  await step("Building better-sqlite3, which LangGraph's SQLite needs", async (show) => {
    const args = [...first, "rebuild", "better-sqlite3", "--foreground-scripts"];
    const { code, output } = await capture(npm, args, { cwd: folder, show });
    if (code !== 0) console.error(`${output.trim().split("\n").at(-1)}\nbetter-sqlite3 could not be built.`);
  });
}
