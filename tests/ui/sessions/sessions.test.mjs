// Actions on whole sessions: search, rename, copy, export, import, and separate users.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after } from "node:test";
import {
  answer,
  chooseFor,
  desk,
  documentOf,
  fileOf,
  importFiles,
  listed,
  newSession,
  open,
  reload,
  sayAndHear,
} from "../page.mjs";

const { story, close } = await open();
after(close);

const titles = (page) => page.locator(".sessions .title").allInnerTexts();
const questions = (page) => page.locator(".question p").allInnerTexts();

async function download(page, deed) {
  const [file] = await Promise.all([page.waitForEvent("download"), deed()]);
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
}

story("a search finds words in every session, marks them, and opens the message", desk, async (page) => {
  const many = Array.from({ length: 300 }, (_, n) => `line ${n}`);
  await importFiles(page, [
    documentOf("Boats", ["Tell me of boats", "The heron stands at the weir", "And?", "No more"]),
    documentOf("Long ago", ["A heron flew by", "Indeed", ...many]),
  ]);
  await listed(page, "Long ago").waitFor();
  await newSession(page);
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.keyboard.type("heron");
  const hits = page.getByRole("list", { name: "Search all sessions" });
  await hits.getByText("Boats").waitFor();
  assert.deepEqual((await hits.locator("mark").allInnerTexts()).map((text) => text.toLowerCase()).sort(), ["heron", "heron"]);
  await page.screenshot({ path: new URL("../../../target/artefacts/search.png", import.meta.url).pathname });
  await page.keyboard.press("ArrowDown");
  await hits.getByRole("link").filter({ hasText: "Long ago" }).click();
  await page.locator(".turn[data-sought]").getByText("A heron flew by").waitFor();
  const top = await page.locator(".turn[data-sought]").evaluate((turn) => turn.getBoundingClientRect().top);
  assert.ok(top > 0 && top < 400, `the message is at ${top} px`);
  await page.getByRole("searchbox").fill("zebra");
  await page.getByText("Nothing found").waitFor();
  await page.getByRole("button", { name: "Clear the search" }).click();
  assert.deepEqual(await titles(page), ["Long ago", "Boats"]);
});

story("a session is renamed, and copied whole or up to a message", desk, async (page) => {
  await sayAndHear(page, "hello");
  await chooseFor(page, "hello", "Rename");
  const title = page.getByRole("dialog").getByRole("textbox", { name: "Title" });
  await title.fill("A greeting");
  await page.keyboard.press("Enter");
  await listed(page, "A greeting").waitFor();
  await sayAndHear(page, "what time is it");
  await chooseFor(page, "A greeting", "Copy as a new session");
  await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 2);
  await page.locator(".turn").nth(1).waitFor();
  assert.deepEqual(await questions(page), ["hello", "what time is it"]);
  const [first] = await page.locator(".turn").all();
  await first.getByRole("button", { name: "New session from here" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 3);
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 1);
  assert.deepEqual(await questions(page), ["hello"]);
  await reload(page);
  assert.equal(await page.locator(".sessions li").count(), 3);
});

story("a session is exported as JSON and imported unchanged, by file or by drop", desk, async (page) => {
  await sayAndHear(page, "what time is it");
  await sayAndHear(page, "think about canal locks");
  const shown = await page.locator('[role="log"]').innerText();
  const file = await download(page, () => chooseFor(page, "what time is it", "Export as JSON"));
  assert.equal(file.name, "what time is it.json");
  await chooseFor(page, "what time is it", "Delete");
  await listed(page, "what time is it").waitFor({ state: "detached" });
  await importFiles(page, [fileOf(file.name, file.text)]);
  await page.locator(".turn").nth(1).waitFor();
  assert.equal(await page.locator('[role="log"]').innerText(), shown);

  await page.evaluate((text) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], "dropped.json", { type: "application/json" }));
    document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, dataTransfer }));
  }, file.text);
  await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 2);
  await page.locator(".turn").nth(1).waitFor();
  assert.equal(await page.locator('[role="log"]').innerText(), shown);
  const again = await download(page, () => page.locator(".bar").getByRole("button", { name: /More about/ }).click().then(() => page.getByRole("menuitem", { name: "Export as JSON" }).click()));
  assert.deepEqual(JSON.parse(again.text).history, JSON.parse(file.text).history);
});

story("a session is exported for AgentScope and as Markdown, and an invalid file is refused with a message", desk, async (page) => {
  await sayAndHear(page, "hello");
  const scope = await download(page, () => chooseFor(page, "hello", "Export as AgentScope JSON"));
  assert.equal(JSON.parse(scope.text).context[0].role, "USER");
  const markdown = await download(page, () => chooseFor(page, "hello", "Export as Markdown"));
  assert.match(markdown.text, /^# hello\n\n## User/);
  await importFiles(page, [fileOf("scope.json", scope.text)]);
  await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 2);
  await page.locator(".question").waitFor();
  assert.deepEqual(await questions(page), ["hello"]);
  await importFiles(page, [fileOf("nonsense.json", "{]")]);
  await page.getByRole("alert").getByText(/JSON|document/i).first().waitFor();
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await page.getByRole("button", { name: "Dismiss" }).count(), 0);
});

story("users see nothing of each other", desk, async (page) => {
  await sayAndHear(page, "hello from nobody");
  const user = page.getByRole("combobox", { name: "User" });
  await user.selectOption("Another user…");
  await page.getByRole("textbox", { name: "Name of the user" }).fill("Ada");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
  assert.equal(await listed(page, "hello from nobody").count(), 0);
  await sayAndHear(page, "hello from Ada");
  assert.match(page.url(), /#\/u\/Ada\/s\//);
  await page.getByRole("searchbox").fill("nobody");
  await page.getByText("Nothing found").waitFor();
  await page.getByRole("button", { name: "Clear the search" }).click();
  await reload(page);
  assert.deepEqual(await questions(page), ["hello from Ada"]);
  await user.selectOption("Anonymous");
  await listed(page, "hello from nobody").click();
  await page.locator(".question p", { hasText: "nobody" }).waitFor();
  assert.deepEqual(await titles(page), ["hello from nobody"]);
});

story("a thousand sessions are listed during scrolling, and only those near the screen are in the page", desk, async (page) => {
  const files = Array.from({ length: 1000 }, (_, n) => documentOf(`Session ${n}`, [`question ${n}`, `answer ${n}`]));
  await importFiles(page, files);
  await listed(page, "Session 999").waitFor({ timeout: 90_000 });
  await reload(page);
  await listed(page, "Session 999").focus();
  const isThere = () => page.evaluate(() => [...document.querySelectorAll(".sessions .title")].some((title) => title.textContent === "Session 0"));
  while (!(await isThere())) {
    const size = await page.evaluate(() => Number(document.querySelector(".sessions li").ariaSetSize));
    await page.keyboard.press("End");
    const isFurther = (size) => Number(document.querySelector(".sessions li").ariaSetSize) > size || document.activeElement.closest("li")?.ariaPosInSet === "1000";
    await page.waitForFunction(isFurther, size);
  }
  await page.keyboard.press("End");
  await listed(page, "Session 0").first().waitFor();
  assert.ok((await page.locator(".sessions li").count()) < 60);
  await page.keyboard.press("Enter");
  await answer(page).getByText("answer 0", { exact: true }).waitFor();
});
