// Installs programs with the platform's package manager, and knows the folder of those that we install ourselves.
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { capture, explain, isRunnable, problem, step, which } from "../run.mjs";

const managers = [
  { program: "apt-get", asRoot: true, first: [["update"]], install: ["install", "-y", "--no-install-recommends"] },
  { program: "dnf", asRoot: true, first: [], install: ["install", "-y"] },
  { program: "brew", asRoot: false, first: [], install: ["install"] },
];

/** The folder of the tools that we install. */
export function toolsFolder() {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache");
  return process.env.LOCKGATE_TOOLS || path.join(cache, "lockgate");
}

/** The program that an environment variable names, or null if the variable is not set. */
export function fromEnv(name) {
  const file = process.env[name];
  if (!file || isRunnable(file)) return file || null;
  throw problem(`$${name} is ${file}, which is not a program: correct or unset it.`);
}

/** The first of these files that is a program, or null. */
export function firstOf(files) {
  return files.find((file) => file && isRunnable(file)) ?? null;
}

/**
 * Installs `packages`, a list for each package manager. Returns null, or the reason why the installation failed. Never throws,
 * because the other tests can run without these programs.
 */
export async function installWith(packages, what) {
  const manager = managers.find(({ program }) => program in packages && which(program));
  if (!manager) return "no known package manager was found";
  const sudo = manager.asRoot ? await rootPrefix() : [];
  if (sudo === null) return `installing it with ${manager.program} needs root`;
  const commands = [...manager.first, [...manager.install, ...packages[manager.program]]];
  try {
    await step(`Installing ${what} with ${manager.program}`, async (show) => {
      for (const command of commands) await run([...sudo, manager.program, ...command], show);
    });
    return null;
  } catch (error) {
    explain(error);
    return `${manager.program} could not install it`;
  }
}

async function run([command, ...args], show) {
  const { code, output } = await capture(command, args, {
    show,
    env: { DEBIAN_FRONTEND: "noninteractive" },
  });
  if (code !== 0) throw problem(`\`${[command, ...args].join(" ")}\` failed.`, output);
}

async function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const { code } = await capture("sudo", ["-n", "true"]);
  return code === 0 ? ["sudo", "-n"] : null;
}
