// Real browser pages that use the packed package, and the browser's developer tools.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { inRoot } from "../../../src/build/run.mjs";
import { project } from "../../npm/support/project.mjs";
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

/** The origins of the pages: `secure` has Web Locks, `insecure` does not. */
export const origins = () => {
  const { port } = server.address();
  return { secure: `http://127.0.0.1:${port}`, insecure: `http://${insecure}:${port}` };
};

/** A story in its own browser profile: `{ context, open }`, where `open` opens another page of the profile. */
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
 * Runs a function in a page or frame. The source of the function is written into a program, so it can use only its parameters. The
 * first parameter has all exports of the package and the kit.
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

/** The developer tools protocol of one page. */
export const devtools = (page) => page.context().newCDPSession(page);

async function servePackage() {
  const folders = {
    "/dist/": path.join(await project(), "node_modules/lockgate/dist"),
    "/": inRoot("tests/chromium/support"),
  };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://any");
    const [start, folder] = Object.entries(folders).find(([start]) => pathname.startsWith(start));
    const file = path.join(folder, pathname.slice(start.length));
    // A frame with an opaque origin needs this header for its imports.
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
