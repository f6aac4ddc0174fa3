// Ten thousand messages: opened at once, scrolled smoothly, without jumps.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, documentOf, importFiles, listed, open, reload, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const texts = Array.from({ length: 10_000 }, (_, n) =>
  n % 2 ? `Answer **${n}**\n\n${"The water rises. ".repeat(1 + (n % 13))}\n\n- one\n- two` : `Question ${n}`,
);
const scroller = (page) => page.locator(".scroller");

story("ten thousand messages open at their end, and only those near the screen are in the page", desk, async (page) => {
  await importFiles(page, [documentOf("Very long", texts)]);
  await listed(page, "Very long").waitFor({ timeout: 60_000 });
  await reload(page);
  await answer(page).getByText("9999").waitFor();
  assert.ok((await page.locator(".turn").count()) < 40);
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(nodes < 1500, `${nodes} nodes are in the page`);

  // From the end to the start, like a user who holds the key down.
  await page.evaluate(async () => {
    const box = document.querySelector(".scroller");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    window.frames = [];
    let last = performance.now();
    while (!document.querySelector('[data-key="m0"]')) {
      box.scrollTop -= 4000;
      await frame();
      const now = performance.now();
      window.frames.push(now - last);
      last = now;
    }
  });
  await page.getByText("Question 0", { exact: true }).waitFor();
  assert.ok((await page.locator(".turn").count()) < 40);
  const times = await page.evaluate(() => window.frames.sort((one, other) => one - other));
  const median = times[Math.floor(times.length / 2)];
  assert.ok(times.length > 50 && median < 100, `half of ${times.length} frames took longer than ${median} ms`);
  await page.screenshot({ path: `${artefacts}long-top.png` });
});

story("the text on the screen does not move while older messages load and the answer grows", desk, async (page) => {
  await importFiles(page, [documentOf("Very long", texts.slice(0, 3000))]);
  await listed(page, "Very long").waitFor({ timeout: 60_000 });
  await answer(page).getByText("2999").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("a long answer");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  await scroller(page).evaluate((box) => (box.scrollTop -= 3000));
  await page.getByRole("button", { name: "To the end" }).waitFor();
  const place = () =>
    page.evaluate(() => {
      const top = document.querySelector(".scroller").getBoundingClientRect().top;
      const turn = [...document.querySelectorAll(".turn")].find((one) => one.getBoundingClientRect().bottom > top + 1);
      return [turn.dataset.key, Math.round(turn.getBoundingClientRect().top)];
    });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const before = await place();
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached", timeout: 60_000 });
  const [key, top] = await place();
  assert.equal(key, before[0]);
  assert.ok(Math.abs(top - before[1]) <= 2, `it moved from ${before[1]} to ${top}`);
  await page.getByRole("button", { name: "To the end" }).click();
  await answer(page).getByText(/finds the conversation in order/).waitFor();
  assert.equal(await page.getByRole("button", { name: "To the end" }).count(), 0);
});

story("sending a message scrolls to the answer", desk, async (page) => {
  await importFiles(page, [documentOf("Long", texts.slice(0, 400))]);
  await answer(page).getByText("399").waitFor();
  await scroller(page).evaluate((box) => (box.scrollTop = 0));
  await page.getByText("Question 0", { exact: true }).waitFor();
  await sayAndHear(page, "what time is it");
  await answer(page).getByText(/answered/).waitFor();
  assert.equal(await page.getByRole("button", { name: "To the end" }).count(), 0);
});

story("a view at the end follows the answer, and a small scroll up stops following", desk, async (page) => {
  await sayAndHear(page, "a long answer");
  await sayAndHear(page, "a long answer");
  const distance = () => scroller(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  assert.ok((await distance()) <= 1);
  await scroller(page).hover();
  await page.mouse.wheel(0, -30);
  await page.getByRole("button", { name: "To the end" }).waitFor();
  assert.ok((await distance()) > 10);
});
