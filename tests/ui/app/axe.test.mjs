// No accessibility problem that axe finds, on every screen, in light and dark mode, on desktop and phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { open, phone, say, sayAndHear, storageOf } from "../page.mjs";

const { story, close, url } = await open();
after(close);

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The findings of axe, one per line, for the rules of WCAG 2.2 A and AA and for best practices. */
async function barriers(page) {
  await page.evaluate(source);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.ok(passes.length > 10, "axe has checked too few rules");
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`));
}

const inside = (page) => page.getByRole("complementary", { name: "Inside this session" });
const tab = async (page, name) => {
  if ((await inside(page).count()) === 0) await page.getByRole("button", { name: "Inside this session" }).click();
  await inside(page).getByRole("tab", { name }).click();
  await inside(page).getByText("Reading", { exact: true }).waitFor({ state: "detached" });
};
const openSettings = async (page) => {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.locator(".report strong").waitFor();
};

/** On a phone the list of sessions is a drawer. */
const sessionsOf = async (page) => {
  const button = page.getByRole("button", { name: "Show sessions" });
  if (await button.isVisible()) await button.click();
};

/** The actions that lead to each screen, by its name. Each starts on a fresh page. */
const screens = {
  "the welcome": async () => {},
  "a conversation with thoughts, tools and a failure": async (page) => {
    await sayAndHear(page, "think about canal locks");
    await sayAndHear(page, "failing tool");
    await sayAndHear(page, "show me markdown with a table");
  },
  "the context": async (page) => {
    await sayAndHear(page, "a report please");
    await tab(page, "Context");
    await inside(page).locator(".part summary").nth(1).click();
    await inside(page).getByRole("button", { name: "Read the whole" }).click();
    await inside(page).getByLabel("Read the whole").waitFor();
  },
  "the state": async (page) => {
    await sayAndHear(page, "work through your tasks");
    await tab(page, "State");
    await inside(page).getByRole("textbox", { name: "Tool" }).fill("clock");
    await inside(page).getByRole("button", { name: "Add rule" }).click();
    await inside(page).getByRole("list", { name: "Rules" }).waitFor();
    await inside(page).getByText("permission_context").click();
  },
  "the files": async (page) => {
    await tab(page, "Files");
    await inside(page).getByRole("textbox", { name: "New file" }).fill("../a");
    await inside(page).getByRole("button", { name: "Make" }).click();
    await inside(page).getByRole("alert").waitFor();
    await inside(page).getByRole("textbox", { name: "New file" }).fill("notes/a.md");
    await inside(page).getByRole("button", { name: "Make" }).click();
    await inside(page).getByRole("textbox", { name: "Text of notes/a.md" }).waitFor();
  },
  "the memory": (page) => tab(page, "Memory"),
  "the settings": openSettings,
  "the settings of a provider with a kept key and a finding": async (page) => {
    await openSettings(page);
    await page.getByRole("combobox", { name: "Provider" }).selectOption("openai");
    await page.getByLabel("API key").fill("sk-x");
    await page.getByRole("checkbox", { name: "Keep the key" }).check();
    await page.getByRole("textbox", { name: "Address" }).fill("nonsense");
    await page.getByRole("button", { name: "Test the connection" }).click();
    await page.locator(".finding strong").waitFor();
  },
  "a search that finds something": async (page) => {
    await sayAndHear(page, "a heron flew by");
    await sessionsOf(page);
    await page.getByRole("searchbox").fill("heron");
    await page.locator(".hits mark").first().waitFor();
  },
  "a menu and a new title": async (page) => {
    await sayAndHear(page, "hello");
    await page.locator(".bar").getByRole("button", { name: /More about/ }).click();
    assert.deepEqual(await barriers(page), [], "the menu");
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Title" }).waitFor();
  },
  "tasks and a plan at the side": async (page) => {
    await sayAndHear(page, "work through your tasks");
    await say(page, "make a plan");
    await page.locator('.turn:last-child[data-progress="ended"]').waitFor();
    await tab(page, "Tasks");
  },
  "a user with a name": async (page) => {
    await sessionsOf(page);
    await page.getByRole("combobox", { name: "User" }).selectOption("another");
    await page.getByRole("textbox", { name: "Name of the user" }).fill("Ada");
  },
  "an approval that waits": async (page) => {
    await say(page, "use send_letter");
    await page.locator('.turn:last-child[data-progress="ended"]').waitFor();
  },
};

const looks = {
  "by day": { viewport: { width: 1300, height: 850 }, colorScheme: "light" },
  "by night": { viewport: { width: 1300, height: 850 }, colorScheme: "dark" },
  "on a phone": { ...phone, colorScheme: "light" },
};

for (const [look, options] of Object.entries(looks)) {
  for (const [name, visit] of Object.entries(screens)) {
    story(`${look} ${name} has no barriers`, { ...options, reducedMotion: "reduce" }, async (page) => {
      await visit(page);
      assert.deepEqual(await barriers(page), []);
    });
  }
  const shut = { ...options, reducedMotion: "reduce", isShut: true, expected: [/Failed to load resource/] };
  const hold = (context) => context.route("**/*.wasm", () => new Promise(() => {}));
  story(`${look} the page that loads has no barriers`, { ...shut, before: hold }, async (page) => {
    await page.getByText("Loading the engine").waitFor();
    assert.deepEqual(await barriers(page), []);
  });
  const storageState = storageOf(url, { "lockgate.settings": { provider: "openai", baseUrl: "nonsense", model: "m" } });
  story(`${look} the page that cannot start has no barriers`, { ...shut, storageState }, async (page) => {
    await page.getByRole("alert").waitFor();
    assert.deepEqual(await barriers(page), []);
  });
}
