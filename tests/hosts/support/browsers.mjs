// One way to control every browser: open pages, run functions in them, reload, close, kill.
//
//   const browser = await launch("firefox");
//   const page = await browser.open("http://127.0.0.1:8080/");
//   await page.evaluate(async (name) => (await navigator.locks.query()).held.length, "given");
//   await browser.close();
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { launchFirefox } from "./firefox.mjs";
import { launchWebkit } from "./webkit.mjs";

/** The browsers, and the variables in which `npm test` passes the paths of their programs. */
const programs = {
  chromium: { program: "CHROMIUM" },
  firefox: { program: "FIREFOX" },
  webkit: { program: "WEBKIT_DRIVER", browser: "WEBKIT_BROWSER", display: "XVFB" },
};

/** The names of the browsers. */
export const browserNames = Object.keys(programs);

/** Why a browser cannot be started, or null. */
export function missing(name) {
  const unset = Object.values(programs[name]).filter((variable) => !process.env[variable]);
  return unset.length === 0 ? null : `${name} is not installed: set $${unset.join(", $")}`;
}

/**
 * Starts a browser without a window, under a profile of its own: `{ name, version, open, close, kill }`. `open(url)` opens a tab
 * or a window and resolves when the page is loaded. `kill` ends the browser at once, as the system would.
 */
export async function launch(name) {
  const why = missing(name);
  if (why !== null) throw new Error(why);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), `lockgate-${name}-`));
  const paths = Object.fromEntries(Object.entries(programs[name]).map(([role, variable]) => [role, process.env[variable]]));
  const forget = () => fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  const start = { chromium: launchChromium, firefox: launchFirefox, webkit: launchWebkit }[name];
  const browser = await start({ ...paths, profile }).catch((error) => {
    forget();
    throw error;
  });
  return {
    name,
    version: browser.version,
    open: async (url) => pageOf(await browser.open(url)),
    close: () => browser.close().finally(forget),
    kill: () => Promise.resolve(browser.kill()).finally(forget),
  };
}

/**
 * A page: `{ evaluate, goto, reload, close }`. `evaluate` runs an async function in the page. The source of the function is sent,
 * so it can use only its parameter, which must be JSON, as must its result.
 */
function pageOf({ run, goto, reload, close }) {
  const evaluate = async (work, given = null) => {
    const answer = await run(`async () => JSON.stringify({ value: await (${work})(${JSON.stringify(given)}) })`);
    return JSON.parse(answer).value;
  };
  return { evaluate, goto, reload, close };
}

async function launchChromium({ program, profile }) {
  const args = ["--headless", "--no-sandbox", "--disable-gpu"];
  const context = await chromium.launchPersistentContext(profile, { executablePath: program, args });
  const open = async (url) => {
    const page = await context.newPage();
    await page.goto(url);
    return {
      run: (source) => page.evaluate(`(${source})()`),
      goto: (address) => page.goto(address),
      reload: () => page.reload(),
      close: () => page.close(),
    };
  };
  // The first page has the connection to the browser's developer tools.
  const tools = await context.newCDPSession(context.pages()[0]);
  const kill = async () => {
    const closed = new Promise((resolve) => context.once("close", resolve));
    await Promise.race([tools.send("Browser.crash").catch(() => {}), closed]);
    await closed;
  };
  return { version: `chromium ${context.browser()?.version() ?? ""}`, open, close: () => context.close(), kill };
}
