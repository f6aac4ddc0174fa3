// Helpers for packaging tests: a small program, a browser, and the table of results.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { inRoot } from "../../src/build/run.mjs";
import { launchOptions } from "../chromium/support/options.mjs";
import { project } from "../npm/support/project.mjs";

/** The folder of the pinned tools. */
export const tools = path.resolve(process.env.LOCKGATE_PACKAGING ?? inRoot("target/packaging"));

/** A file of a tool that is installed there. */
export const tool = (...parts) => path.join(tools, "node_modules", ...parts);

/** A module of a tool that is installed there. */
export const toolModule = (...parts) => import(pathToFileURL(tool(...parts)).href);

const matrix = process.env.LOCKGATE_MATRIX;

/** Writes a line of the table of results. */
export function record(place, how, detail, works = true) {
  if (matrix) fs.appendFileSync(matrix, `${JSON.stringify({ place, how, works, detail })}\n`);
}

/**
 * Tests the package in one environment, and writes a line of the table with the result of `work`. `skip` is the reason why the test
 * cannot run here.
 */
export function cell(place, how, work, { skip = false } = {}) {
  test(`${place}: ${how}`, { skip, timeout: 120_000 }, async () => {
    let detail = "";
    let works = false;
    try {
      detail = (await work()) ?? "";
      works = true;
    } finally {
      record(place, how, detail, works);
    }
  });
}

/** The program of all packaging tests: it reports its answer, and the error for a deliberate mistake. */
export const program = (entry = "lockgate", before = "") => `
import { createAgent, demoModel${before.includes("init") ? ", init" : ""} } from ${JSON.stringify(entry)};
export async function answer() {
  ${before}
  const agent = await createAgent({ name: "helper", model: demoModel() });
  const sessionId = "s" + Date.now();
  const { text } = await agent.call("Hello there", { sessionId });
  const { code } = await agent.call("Hello", { sessionId: "" }).catch((error) => error);
  return { text, code, messages: (await agent.history({ sessionId })).length };
}
`;

/** The expected output of that program. */
export function assertAnswer(answer) {
  assert.match(String(answer?.text), /“Hello there”/, JSON.stringify(answer));
  assert.deepEqual({ code: answer.code, messages: answer.messages }, { code: "ID_INVALID", messages: 2 });
}

/** A fresh folder inside the project, whose programs find the package, with these files in it. */
export async function folderWith(files) {
  const folder = path.join(await project(), `try-${process.hrtime.bigint()}`);
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  return folder;
}

let browser;
after(() => browser?.close());

/** Opens a URL in Chromium and waits for the output of the page's program. Returns also the requested files. */
export async function openPage(url) {
  const { chromium } = await import("playwright-core");
  browser ??= await chromium.launch(launchOptions());
  const page = await browser.newPage();
  const asked = [];
  const said = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  try {
    await page.goto(url);
    await page.waitForFunction(() => globalThis.answered !== undefined, undefined, { timeout: 60_000 }).catch((cause) => {
      throw new Error(`the page never answered; its console: ${said.join("\n")}`, { cause });
    });
    return { answer: await page.evaluate(() => globalThis.answered), asked, said };
  } finally {
    await page.close();
  }
}

/** The page that runs the program of `main.js` and shows its answer. */
export const html = (script) => `<!doctype html><link rel="icon" href="data:,"><title>try</title>${script}`;

/** How a page's `main.js` runs the program. */
export const shown = `
import { answer } from "./program.js";
globalThis.answering = answer().then((value) => (globalThis.answered = value), (error) => (globalThis.answered = { failed: String(error), code: error.code, hint: error.hint }));
`;

/** The files below a folder whose name ends so. */
export const filesOf = (folder, ending) =>
  fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(ending)).sort();

/** A number of bytes as readable text. */
export const kb = (bytes) => `${Math.round(bytes / 1024)} KB`;

/** The bytes of files below a folder. */
export const sizeOf = (folder, names) =>
  names.reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
