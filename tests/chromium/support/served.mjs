// A browser, and a server for the files of the packed package.
import fs from "node:fs";
import path from "node:path";
import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { project } from "../../npm/support/project.mjs";
import { launchOptions } from "./options.mjs";

const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/** What the tests of a file share: a browser, and the folder of the package. */
export function opened() {
  const there = {};
  before(async () => {
    there.browser = await chromium.launch(launchOptions());
    there.dist = path.join(await project(), "node_modules/lockgate/dist");
  });
  after(() => there.browser?.close());
  return there;
}

/** Answers with a file, or with 404. */
export function answerWith(file, response) {
  if (!fs.existsSync(file)) return response.writeHead(404).end();
  return response.setHeader("content-type", types[path.extname(file)] ?? "text/plain").end(fs.readFileSync(file));
}
