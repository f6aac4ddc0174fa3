// A fresh browser page with the built web UI, and common actions of a user.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "../../src/build/web/serve.mjs";

const folder = process.env.LOCKGATE_WWW ?? new URL("../../target/www", import.meta.url).pathname;
const args =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking " +
  "--disable-component-update --disable-sync";

export const artefacts = new URL("../../target/artefacts/", import.meta.url).pathname;
export const desk = { viewport: { width: 1200, height: 800 } };
export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Starts the browser and the server that all tests of a file share. */
export async function open() {
  mkdirSync(artefacts, { recursive: true });
  const server = await serve(folder, 0);
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: args.split(" ") });
  const close = async () => {
    await browser.close();
    await server.close();
  };

  /**
   * A story in its own profile. A console error, a policy violation or a request to another host fails it. The first page is open;
   * `another` opens one more tab. The story ends with a screenshot of its first page. `allowed`: prefixes of other URLs that may be
   * requested; `expected`: console errors that belong to the story; `before`: changes the profile before the page is opened;
   * `isShut`: the page cannot be used yet.
   */
  function story(name, { allowed = [], expected = [], before, isShut, ...options }, tell) {
    test(name, { timeout: 120_000 }, async () => {
      const context = await browser.newContext(options);
      const faults = await watch(context, [server.url, ...allowed]);
      try {
        await before?.(context);
        const another = async (address = server.url) => {
          const page = await context.newPage();
          await page.goto(address);
          if (!isShut) await page.getByRole("textbox", { name: "Message" }).waitFor();
          return page;
        };
        const page = await another();
        await tell(page, { another, faults, context });
        await page.screenshot({ path: `${artefacts}${name.replace(/\W+/g, "-").slice(0, 60)}.png` });
        const isExpected = (fault) => expected.some((pattern) => pattern.test(fault));
        assert.deepEqual(faults.filter((fault) => !isExpected(fault)), []);
      } finally {
        await context.close();
      }
    });
  }
  return { story, close, browser, url: server.url };
}

async function watch(context, allowed) {
  const faults = [];
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  context.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  context.on("weberror", (error) => faults.push(String(error.error())));
  context.on("request", (request) => {
    const isAllowed = allowed.some((begin) => request.url().startsWith(begin));
    if (!isAllowed) faults.push(`request to ${request.url()}`);
  });
  return faults;
}

/** The content of localStorage before the page is first opened. */
export function storageOf(url, items) {
  const localStorage = Object.entries(items).map(([name, value]) => ({
    name,
    value: JSON.stringify(value),
  }));
  return { cookies: [], origins: [{ origin: new URL(url).origin, localStorage }] };
}

/** Sends a message with the keyboard and waits until it is in the conversation. */
export async function say(page, text) {
  // Only a part of a long conversation is rendered, so turns are identified by their keys and not by their number.
  const last = page.locator(".turn:last-child");
  const before = (await last.count()) ? await last.getAttribute("data-key") : null;
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
  await page.waitForFunction((key) => {
    const turn = document.querySelector(".turn:last-child");
    return turn && turn.dataset.key !== key;
  }, before);
}

export async function sayAndHear(page, text) {
  await say(page, text);
  await heard(page);
}

/** Waits until nothing runs. */
export async function heard(page) {
  await page.locator('.turn:last-child[data-progress="ended"]').waitFor({ timeout: 60_000 });
}

/** Waits until sessions and conversation are loaded, so that missing elements are really missing. */
export async function reload(page) {
  await page.reload();
  await page.locator('[role="log"][aria-busy="false"]').waitFor({ state: "attached" });
  await page.locator('.sessions[aria-busy="false"]').waitFor({ state: "attached" });
}

/** A session as a document that can be imported: texts of the user and of the assistant in turn. */
export function documentOf(title, texts) {
  const at = "2026-01-02T03:04:05.000Z";
  const history = texts.map((text, n) => ({
    id: `m${n}`,
    role: n % 2 ? "assistant" : "user",
    content: [{ type: "text", text }],
    at,
  }));
  const name = `${title.replace(/\W+/g, "-")}.json`;
  const state = {
    format: 1,
    version: 1,
    revision: "",
    session_id: "s",
    user_id: null,
    context: history,
    summary: "",
    permission_context: { mode: "default", allow_rules: [], ask_rules: [], deny_rules: [], working_directories: [] },
    plan_mode_context: { plan_active: false, current_plan_file: null },
    tasks_context: { tasks: [] },
    tool_context: { activated_groups: [], activated_skills: [] },
    shutdown_interrupted: false,
  };
  return fileOf(name, JSON.stringify({ lockgate: 1, title, history, state }));
}

export function fileOf(name, text) {
  return { name, mimeType: "application/json", buffer: Buffer.from(text) };
}

export async function importFiles(page, files) {
  await page.locator('nav input[type="file"]').setInputFiles(files);
}

export async function newSession(page) {
  await page.getByRole("button", { name: "New session", exact: true }).click();
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
}

/** The link of a listed session. */
export function listed(page, title) {
  const hasTitle = page.locator(".title", { hasText: title });
  return page.getByRole("list", { name: "Sessions" }).getByRole("link").filter({ has: hasTitle });
}

export async function deleteByMouse(page, title) {
  await chooseFor(page, title, "Delete");
}

/** Chooses from the menu of a listed session. */
export async function chooseFor(page, title, deed) {
  await listed(page, title).hover();
  const list = page.getByRole("list", { name: "Sessions" });
  await list.getByRole("button", { name: `More about ${title}` }).click();
  await page.getByRole("menuitem", { name: deed, exact: true }).click();
}

export function answer(page) {
  return page.locator(".turn:last-child .answer");
}
