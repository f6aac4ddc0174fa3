// A server for pages that use the packed package, and stories that run in every browser.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";
import { project } from "../../npm/support/project.mjs";
import { browserNames, launch, missing } from "./browsers.mjs";

const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/** The browsers that the tests of this file have started. Each is started once, when it is needed. */
const running = new Map();
after(async () => {
  for (const browser of running.values()) await (await browser).close();
});

/**
 * A test for each browser. A browser that is not installed is skipped with the reason, which is a failure in CI. The story gets
 * `{ browser, origin, open, pages }`: `open(path)` opens a page, and `pages` maps paths to `{ body, headers }` of pages.
 */
export function story(name, tell, { browsers = browserNames, timeout = 120_000 } = {}) {
  for (const each of browsers) {
    const why = missing(each);
    test(`${name} (${each})`, { timeout, skip: why ?? false }, async () => {
      if (!running.has(each)) running.set(each, launch(each));
      const browser = await running.get(each);
      const { server, pages, origin } = await servePackage();
      const opened = [];
      const open = async (at = "/") => {
        const page = await browser.open(`${origin}${at}`);
        opened.push(page);
        return page;
      };
      try {
        await tell({ browser, origin, open, pages });
      } finally {
        for (const page of opened) await page.close().catch(() => {});
        server.closeAllConnections();
        server.close();
      }
    });
  }
}

/** Runs a function in a page. Its parameters are all exports of the package with the kit, and `given`. */
export function within(page, work, given = null) {
  return page.evaluate(`async (given) => {
    const lockgate = await import("/dist/entry/browser.js");
    const kit = await import("/kit.mjs");
    return (${work})({ ...lockgate, ...kit }, given);
  }`, given);
}

/** The same in a sandboxed frame of the page, which has an opaque origin: the browser denies it storage and locks. */
export function withinSandbox(page, work, given = null) {
  const source = `
    const answer = await (async () => {
      const lockgate = await import(ORIGIN + "/dist/entry/browser.js");
      const kit = await import(ORIGIN + "/kit.mjs");
      return (${work})({ ...lockgate, ...kit }, ${JSON.stringify(given)});
    })().then((value) => ({ value }), (error) => ({ error: String(error.code ?? "") + " " + String(error.stack ?? error) }));
    parent.postMessage(JSON.stringify(answer), "*");`;
  return page.evaluate(async (source) => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.srcdoc = `<!doctype html><script type="module">${source.replaceAll("ORIGIN", JSON.stringify(location.origin))}</script>`;
    const answered = new Promise((resolve) => addEventListener("message", ({ data }) => resolve(JSON.parse(data)), { once: true }));
    document.body.append(frame);
    const { value, error } = await answered;
    frame.remove();
    if (error !== undefined) throw new Error(error);
    return value;
  }, source);
}

async function servePackage() {
  const folders = {
    "/dist/": path.join(await project(), "node_modules/lockgate/dist"),
    "/": inRoot("tests/chromium/support"),
  };
  const pages = { "/": { body: '<!doctype html><link rel="icon" href="data:,"><title>story</title><body></body>' } };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://any");
    // A frame with an opaque origin needs this header for its imports.
    response.setHeader("access-control-allow-origin", "*");
    const page = pages[pathname];
    if (page !== undefined) return response.writeHead(200, { "content-type": "text/html", ...page.headers }).end(page.body);
    const [start, folder] = Object.entries(folders).find(([start]) => pathname.startsWith(start));
    const file = path.join(folder, pathname.slice(start.length));
    if (!fs.existsSync(file)) return response.writeHead(404).end();
    return response.setHeader("content-type", types[path.extname(file)] ?? "text/plain").end(fs.readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, pages, origin: `http://127.0.0.1:${server.address().port}` };
}
