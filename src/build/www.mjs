// Builds the web UI, which uses the package by its public name, into `target/www`.
import fs from "node:fs";
import process from "node:process";
import { isCurrent, stampAs } from "./current.mjs";
import { inRoot, must, problem, step } from "./run.mjs";
import { prepare } from "./setup.mjs";

/** Builds the UI if it is out of date; `dist/` must have been built. Returns the folder. */
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
  const advice = "The web UI does not build: correct what Vite names above.";
  await step("vite build", (show) => must(process.execPath, args, { show, advice }));
  stampAs(started, [index]);
  return out;
}
