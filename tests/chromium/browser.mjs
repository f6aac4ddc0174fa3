// Real pages of a real browser on the packed package, and what the browser can be made to do to them.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { inRoot } from "../../src/build/run.mjs";
import { project } from "../npm/project.mjs";
import { insecure, launchOptions } from "./options.mjs";

export { launchOptions };

const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

let browser;
let server;

before(async () => {
  server = await servePackage();
  browser = await chromium.launch(launchOptions());
});

after(async () => {
  await browser?.close();
  server?.close();
  server?.closeAllConnections();
});

/** Where pages are: `secure` has Web Locks, `insecure` has not. */
export const origins = () => {
  const { port } = server.address();
  return { secure: `http://127.0.0.1:${port}`, insecure: `http://${insecure}:${port}` };
};

/** A story in a browser profile of its own: `{ context, open }`, where `open` opens another page of it. */
export function story(name, tell, { origin = "secure", skip = false } = {}) {
  test(name, { timeout: 120_000, skip }, async () => {
    const context = await browser.newContext();
    try {
      const open = () => openPage(context, origins()[origin]);
      await tell({ context, open, page: await open(), origin: origins()[origin] });
    } finally {
      await context.close();
    }
  });
}

/** A page that has loaded nothing yet. */
export async function openPage(context, origin) {
  const page = await context.newPage();
  await page.goto(`${origin}/`);
  return page;
}

/**
 * Runs a function in a page or frame. It is written into a program there, so it sees nothing of this process but its
 * parameters; the first is everything of the package and the kit.
 */
export function within(page, work, given = null) {
  return page.evaluate(program(work, given));
}

/** The program that runs a function in a page. */
export function program(work, given = null) {
  return `(async () => {
    const lockgate = await import("/dist/entry/browser.js");
    const kit = await import("/kit.mjs");
    return (${work})({ ...lockgate, ...kit }, ${JSON.stringify(given)});
  })()`;
}

/** The browser's own doors, for one page. */
export const devtools = (page) => page.context().newCDPSession(page);

async function servePackage() {
  const folders = {
    "/dist/": path.join(await project(), "node_modules/lockgate/dist"),
    "/": inRoot("tests/chromium"),
  };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://any");
    const [start, folder] = Object.entries(folders).find(([start]) => pathname.startsWith(start));
    const file = path.join(folder, pathname.slice(start.length));
    // A frame without an origin of its own, and its imports, need to be let in.
    response.setHeader("access-control-allow-origin", "*");
    if (pathname === "/") {
      response.setHeader("content-type", "text/html");
      return response.end('<!doctype html><link rel="icon" href="data:,"><title>story</title>');
    }
    if (!fs.existsSync(file)) return response.writeHead(404).end();
    response.setHeader("content-type", types[path.extname(file)] ?? "text/plain");
    return response.end(fs.readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
