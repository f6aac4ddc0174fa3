// Builds the web UI into `target/www`. The web UI uses the package by its public name.
import fs from "node:fs";
import process from "node:process";
import { isCurrent, stampAs } from "../package/current.mjs";
import { inRoot, must, problem, step } from "../run.mjs";
import { prepare } from "../setup/setup.mjs";

/** Builds the web UI if it is out of date. `dist/` must have been built before. Returns the folder. */
export async function buildWww() {
  const { vite } = await prepare(["npm"], { quiet: true });
  if (!fs.existsSync(inRoot("www/vite.config.ts")))
    throw problem("www/vite.config.ts is missing: without it there is no web UI to build.");
  const out = inRoot("target/www");
  const index = inRoot("target/www/index.html");
  const inputs = [inRoot("www"), inRoot("dist"), inRoot("package-lock.json")];
  if (isCurrent([index], inputs)) {
    console.log("target/www is up to date");
    return out;
  }
  const started = Date.now();
  const args = [vite, "build", "www", "--outDir", out, "--emptyOutDir"];
  const advice = "The web UI does not build: correct the errors above.";
  await step("vite build", (show) => must(process.execPath, args, { show, advice }));
  stampAs(started, [index]);
  return out;
}
