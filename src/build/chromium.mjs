// Finds Chromium and its driver, or installs them with the platform's package manager.
import process from "node:process";
import { capture, explain, isRunnable, problem, step, which } from "./run.mjs";

const browsers = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const apps = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
const installers = [
  {
    program: "apt-get",
    asRoot: true,
    commands: [
      ["update"],
      ["install", "-y", "--no-install-recommends", "chromium", "chromium-driver"],
    ],
  },
  { program: "dnf", asRoot: true, commands: [["install", "-y", "chromium", "chromedriver"]] },
  {
    program: "brew",
    asRoot: false,
    commands: [["install", "--cask", "google-chrome", "chromedriver"]],
  },
];

/** The paths of Chromium and its driver; what is missing and cannot be had is null, and said why. */
export async function prepareChromium() {
  let found = find();
  let reason = null;
  if (!found.chromium || !found.chromedriver) {
    reason = await install();
    found = find();
  }
  const isComplete = found.chromium && found.chromedriver;
  return {
    ...found,
    chromiumMissing: isComplete ? null : (reason ?? advice("the package manager has none")),
  };
}

function find() {
  return {
    chromium: fromEnv("CHROMIUM") ?? first(browsers.map(which)) ?? first(apps),
    chromedriver:
      fromEnv("CHROMEDRIVER") ?? which("chromedriver") ?? first(["/usr/lib/chromium/chromedriver"]),
  };
}

function fromEnv(name) {
  const file = process.env[name];
  if (!file || isRunnable(file)) return file || null;
  throw problem(`$${name} is ${file}, which is no program: correct or unset it.`);
}

function first(files) {
  return files.find((file) => file && isRunnable(file)) ?? null;
}

function advice(why) {
  return `Chromium or chromedriver is missing and ${why}: install both, or set $CHROMIUM and $CHROMEDRIVER to them.`;
}

// Returns why it could not be done, or null. Never throws: without a browser the rest can still run.
async function install() {
  const installer = installers.find(({ program }) => which(program));
  if (!installer) return advice("no package manager known here could install it");
  const sudo = installer.asRoot ? await rootPrefix() : [];
  if (sudo === null) return advice(`installing it with ${installer.program} takes root`);
  try {
    await step(`Installing Chromium and its driver with ${installer.program}`, async (show) => {
      for (const command of installer.commands)
        await runInstaller([...sudo, installer.program, ...command], show);
    });
    return null;
  } catch (error) {
    explain(error);
    return advice(`${installer.program} could not install it`);
  }
}

async function runInstaller([command, ...args], show) {
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
