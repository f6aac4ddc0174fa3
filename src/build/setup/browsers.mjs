// Finds Firefox and WebKit, or installs them with the platform's package manager.
import fs from "node:fs";
import path from "node:path";
import { firstOf, fromEnv, installWith } from "./packages.mjs";
import { which } from "../run.mjs";

const packages = {
  firefox: { "apt-get": ["firefox-esr"], dnf: ["firefox"], brew: ["--cask", "firefox"] },
  // WebKit needs a display, so it runs on a virtual one.
  webkit: { "apt-get": ["webkit2gtk-driver", "xvfb"] },
};

/**
 * The paths of Firefox, and of WebKit with its driver and its display. A path is null if the program is missing and cannot be
 * installed; `firefoxMissing` and `webkitMissing` say why.
 */
export async function prepareBrowsers() {
  const firefox = await foundOr("firefox", findFirefox, "Firefox", "$FIREFOX to its path");
  const webkit = await foundOr("webkit", findWebkit, "WebKit with its driver and Xvfb", "$WEBKIT_DRIVER, $WEBKIT_BROWSER (MiniBrowser) and $XVFB to their paths");
  return { ...firefox.paths, firefoxMissing: firefox.missing, ...webkit.paths, webkitMissing: webkit.missing };
}

async function foundOr(name, find, what, variables) {
  const isComplete = (paths) => Object.values(paths).every(Boolean);
  let paths = find();
  if (isComplete(paths)) return { paths, missing: null };
  const reason = await installWith(packages[name], what);
  paths = find();
  const advice = `${what} is missing and ${reason ?? "the package manager does not have it"}: install it, or set ${variables}.`;
  return { paths, missing: isComplete(paths) ? null : advice };
}

function findFirefox() {
  const apps = ["/Applications/Firefox.app/Contents/MacOS/firefox"];
  return { firefox: fromEnv("FIREFOX") ?? which("firefox-esr") ?? which("firefox") ?? firstOf(apps) };
}

function findWebkit() {
  return {
    webkitDriver: fromEnv("WEBKIT_DRIVER") ?? which("WebKitWebDriver"),
    webkitBrowser: fromEnv("WEBKIT_BROWSER") ?? firstOf(miniBrowsers()),
    xvfb: fromEnv("XVFB") ?? which("Xvfb"),
  };
}

/** MiniBrowser lies in a folder of its version, which is not in the PATH. The newest one comes first. */
function miniBrowsers() {
  const roots = ["/usr/lib", "/usr/libexec", ...subfolders("/usr/lib")];
  return roots.flatMap((root) => subfolders(root).filter((folder) => path.basename(folder).startsWith("webkit"))).sort().reverse().map((folder) => path.join(folder, "MiniBrowser"));
}

function subfolders(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => path.join(folder, name));
}
