// Installs programs with the platform's package manager.
import process from "node:process";
import { capture, explain, isRunnable, problem, step, which } from "./run.mjs";

const managers = [
  { program: "apt-get", asRoot: true, first: [["update"]], install: ["install", "-y", "--no-install-recommends"] },
  { program: "dnf", asRoot: true, first: [], install: ["install", "-y"] },
  { program: "brew", asRoot: false, first: [], install: ["install"] },
];

/** The program that a variable of the environment names, if it does. */
export function fromEnv(name) {
  const file = process.env[name];
  if (!file || isRunnable(file)) return file || null;
  throw problem(`$${name} is ${file}, which is no program: correct or unset it.`);
}

/** The first of these files that is a program. */
export function firstOf(files) {
  return files.find((file) => file && isRunnable(file)) ?? null;
}

/**
 * Installs `packages`, which are named by package manager. Returns why it could not be done, or null. Never throws:
 * without them the rest can still run.
 */
export async function installWith(packages, what) {
  const manager = managers.find(({ program }) => program in packages && which(program));
  if (!manager) return "no package manager known here could install it";
  const sudo = manager.asRoot ? await rootPrefix() : [];
  if (sudo === null) return `installing it with ${manager.program} takes root`;
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
