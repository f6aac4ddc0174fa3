// Regenerated answers, edited questions and summaries: no message is lost.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, documentOf, heard, importFiles, listed, open, phone, reload, say, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const questions = (page) => page.locator(".question p").allInnerTexts();
const ways = (page) => page.locator(".turn:last-child .ways");

story("an answer is regenerated, and the user switches between both answers", desk, async (page) => {
  await sayAndHear(page, "hello");
  await sayAndHear(page, "what time is it");
  const first = await answer(page).innerText();
  await page.getByRole("button", { name: "Answer again" }).click();
  await ways(page).getByText("2/2").waitFor();
  const second = await answer(page).innerText();
  assert.notEqual(second, first);
  assert.deepEqual(await questions(page), ["hello", "what time is it"]);
  await listed(page, "hello").getByText("1 branch").waitFor();
  await page.screenshot({ path: `${artefacts}branches.png` });

  await page.getByRole("button", { name: "Earlier answer" }).click();
  await ways(page).getByText("1/2").waitFor();
  assert.equal(await answer(page).innerText(), first);
  await reload(page);
  await ways(page).getByText("1/2").waitFor();
  assert.equal(await answer(page).innerText(), first);
  await page.getByRole("button", { name: "Later answer" }).click();
  await ways(page).getByText("2/2").waitFor();
  assert.equal(await answer(page).innerText(), second);
});

story("a question is edited by keyboard and sent again, and the old one stays selectable", desk, async (page) => {
  await sayAndHear(page, "hello");
  await sayAndHear(page, "wat time");
  const edit = page.getByRole("button", { name: "Edit", exact: true });
  await edit.press("Enter");
  const editor = page.getByRole("textbox", { name: "Edit the question" });
  await editor.waitFor();
  await page.keyboard.press("Escape");
  await editor.waitFor({ state: "detached" });
  await edit.press("Enter");
  await editor.fill("what time is it");
  await page.keyboard.press("Enter");
  await ways(page).getByText("2/2").waitFor();
  assert.deepEqual(await questions(page), ["hello", "what time is it"]);
  await page.getByRole("button", { name: "Earlier answer" }).click();
  await ways(page).getByText("1/2").waitFor();
  assert.deepEqual(await questions(page), ["hello", "wat time"]);
  await sayAndHear(page, "and more");
  await page.locator(".turn").nth(1).getByText("1/2").waitFor();
  assert.deepEqual(await questions(page), ["hello", "wat time", "and more"]);
});

story("after a stopped regeneration both answers stay selectable", desk, async (page) => {
  await sayAndHear(page, "a long answer");
  await page.getByRole("button", { name: "Answer again" }).press("Enter");
  await page.locator('.turn:last-child[data-progress="running"]').waitFor();
  await page.waitForFunction(() => document.querySelector(".answer")?.textContent.length > 20);
  await page.keyboard.press("Escape");
  await heard(page);
  await page.locator(".turn").getByText("Stopped", { exact: true }).waitFor();
  await ways(page).getByText("2/2").waitFor();
  await reload(page);
  await page.locator(".turn").getByText("Stopped", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Earlier answer" }).click();
  await ways(page).getByText("1/2").waitFor();
  assert.equal(await page.getByText("Stopped", { exact: true }).count(), 0);
});

story("a long session is summarised, the summarised messages can be shown, and the summary is undone", desk, async (page) => {
  const texts = Array.from({ length: 60 }, (_, n) => (n % 2 ? `Answer ${n}: ${"water ".repeat(30)}` : `Question ${n}`));
  await importFiles(page, [documentOf("A long day", texts)]);
  await listed(page, "A long day").waitFor();
  await page.locator(".turn").first().waitFor();
  await sayAndHear(page, "hello");
  const band = page.getByRole("region", { name: /summarised for the model/ });
  const toTop = () => page.locator(".scroller").evaluate((scroller) => (scroller.scrollTop = 0));
  await page.waitForFunction(() => document.querySelectorAll(".actions").length > 0);
  await toTop();
  await band.waitFor();
  await page.screenshot({ path: `${artefacts}summary.png` });
  assert.ok(!(await questions(page)).includes("Question 0"));
  await band.getByRole("button", { name: "Show what was said" }).click();
  await toTop();
  await page.getByText("Question 0", { exact: true }).waitFor();
  await page.screenshot({ path: `${artefacts}summary-open.png` });
  await band.getByRole("button", { name: "Undo the summary" }).click();
  await band.waitFor({ state: "detached" });
  await page.getByText("Question 0", { exact: true }).waitFor();
  await reload(page);
  await toTop();
  await page.getByText("Question 0", { exact: true }).waitFor();
  assert.equal(await band.count(), 0);
});

story("a result too long for the model is shown in part, and can be opened as a whole", phone, async (page) => {
  await sayAndHear(page, "write a long report");
  const card = page.getByRole("group", { name: "Tool report" });
  await card.getByText(/The model sees the beginning and the end/).waitFor();
  assert.doesNotMatch(await card.innerText(), /boat 144 of 288/);
  await card.getByRole("button", { name: /Read the whole/ }).click();
  assert.match(await card.innerText(), /boat 144 of 288/);
  await reload(page);
  await card.getByRole("button", { name: /Read the whole/ }).click();
  assert.match(await card.innerText(), /boat 144 of 288/);
});

story("a tool shows its progress while it runs, and a picture when it is done", desk, async (page) => {
  await say(page, "count down from 6");
  const card = page.getByRole("group", { name: "Tool count_down" });
  await card.locator("pre[data-live]").waitFor();
  assert.equal(await card.locator(".state").innerText(), "running");
  await page.screenshot({ path: `${artefacts}live-tool.png` });
  await heard(page);
  await card.getByText("the gate is open").waitFor();
  await sayAndHear(page, "draw a picture");
  const image = page.getByRole("img", { name: "a lock from above" });
  assert.equal(await image.evaluate((img) => img.naturalWidth), 480);
});

story("tasks are ticked off in the side panel, and a plan waits for approval", { viewport: { width: 1400, height: 800 } }, async (page) => {
  await sayAndHear(page, "work through your tasks");
  const tasks = page.getByRole("region", { name: "Tasks" });
  await tasks.getByText("Let the water in").waitFor();
  assert.equal(await tasks.getByText("done", { exact: true }).count(), 3);
  await say(page, "make a plan");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await page.getByRole("region", { name: "Plan", exact: true }).getByText("Only planning").waitFor();
  await page.getByRole("region", { name: "Plan", exact: true }).getByText("Close the lower gate").waitFor();
  await page.screenshot({ path: `${artefacts}plan.png` });
  await page.waitForFunction(() => document.querySelector(".approval .primary").ariaDisabled === "false");
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer(page).getByText("The plan is approved, and I may act again.").waitFor();
  await page.getByText("Only planning").waitFor({ state: "detached" });
});
