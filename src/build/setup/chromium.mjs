// Finds Chromium and its driver, or installs them with the platform's package manager.
import { firstOf, fromEnv, installWith } from "./packages.mjs";
import { which } from "../run.mjs";

const browsers = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const apps = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
const packages = {
  "apt-get": ["chromium", "chromium-driver"],
  dnf: ["chromium", "chromedriver"],
  brew: ["--cask", "google-chrome", "chromedriver"],
};

/** The paths of Chromium and its driver. A path is null if the program is missing and cannot be installed; `chromiumMissing` says why. */
export async function prepareChromium() {
  let found = find();
  let reason = null;
  if (!found.chromium || !found.chromedriver) {
    reason = await installWith(packages, "Chromium and its driver");
    found = find();
  }
  const isComplete = found.chromium && found.chromedriver;
  return {
    ...found,
    chromiumMissing: isComplete ? null : advice(reason ?? "the package manager does not have it"),
  };
}

function find() {
  return {
    chromium: fromEnv("CHROMIUM") ?? firstOf(browsers.map(which)) ?? firstOf(apps),
    chromedriver:
      fromEnv("CHROMEDRIVER") ??
      which("chromedriver") ??
      firstOf(["/usr/lib/chromium/chromedriver"]),
  };
}

function advice(why) {
  return `Chromium or chromedriver is missing and ${why}: install both, or set $CHROMIUM and $CHROMEDRIVER to their paths.`;
}
