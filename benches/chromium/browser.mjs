// A page of a real browser with the measures of page.mjs.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import { chromium } from "playwright-core";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const settings = JSON.parse(fs.readFileSync(here("../../tests/browser/webdriver.json"), "utf8"));
const types = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Runs `work(page)` in a page of a new profile that has everything of `page.mjs` as `bench`. */
export async function inPage(work) {
  const server = await serve(await bundle());
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: settings["goog:chromeOptions"].args });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.evaluate('import("/page.js").then((bench) => { globalThis.bench = bench; })');
    return await work(page);
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}

async function bundle() {
  const packaged = {
    name: "packaged",
    setup: ({ onResolve }) => {
      onResolve({ filter: /^lockgate$|dist\/entry\/node\.js$/ }, () => ({ path: "/dist/entry/browser.js", external: true }));
    },
  };
  const { outputFiles } = await esbuild.build({
    entryPoints: [here("page.mjs")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    logLevel: "silent",
    plugins: [packaged],
  });
  return outputFiles[0].contents;
}

async function serve(script) {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://any");
    // The clock of an isolated page has a twenty times higher resolution.
    response.setHeader("cross-origin-opener-policy", "same-origin");
    response.setHeader("cross-origin-embedder-policy", "require-corp");
    response.setHeader("content-type", types[path.extname(pathname)] ?? "text/html");
    if (pathname === "/") return response.end('<!doctype html><link rel="icon" href="data:,"><title>bench</title>');
    if (pathname === "/page.js") return response.end(script);
    return fs.createReadStream(here(`../..${path.posix.normalize(pathname)}`)).on("error", () => response.writeHead(404).end()).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
