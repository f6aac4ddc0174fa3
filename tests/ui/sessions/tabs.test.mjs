// One session in several tabs, reloads during an answer, and stores and servers that fail.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, heard, listed, newSession, open, reload, say, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

/** A viewport so tall that the whole session is in the page. */
const tall = { viewport: { width: 1200, height: 3000 } };
const questions = (page) => page.locator(".question p").allInnerTexts();
const settledCard = (page) => page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");

story("an answer grows in two tabs at once, and the other tab can stop it", desk, async (page, { another }) => {
  await sayAndHear(page, "hello");
  const other = await another(page.url());
  await other.locator(".question").waitFor();
  await say(page, "a long answer");
  await other.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  await listed(other, "hello").getByText("running").waitFor();
  assert.deepEqual(await questions(other), ["hello", "a long answer"]);
  await other.screenshot({ path: `${artefacts}tab-follows.png` });
  await other.getByRole("button", { name: "Stop" }).click();
  await heard(page);
  await heard(other);
  await page.getByText("Stopped", { exact: true }).waitFor();
  const text = await answer(page).innerText();
  await other.waitForFunction((text) => document.querySelector(".turn:last-child .answer").innerText === text, text);
});

story("a tab opened during an answer shows the answer from its beginning", desk, async (page, { another }) => {
  await say(page, "a long answer");
  await page.waitForFunction(() => document.querySelector(".answer")?.textContent.length > 60);
  const other = await another(page.url());
  await other.waitForFunction(() => document.querySelector(".answer")?.textContent.startsWith("A canal lock"));
  assert.equal(await other.locator('.turn:last-child[data-progress="running"]').count(), 1);
  await page.keyboard.press("Escape");
  await heard(page);
  await heard(other);
});

story("an approval that one tab asks for is given in another", desk, async (page, { another }) => {
  await say(page, "send a letter to Ada");
  await settledCard(page);
  const other = await another(page.url());
  await settledCard(other);
  await other.getByRole("button", { name: "Allow once" }).click();
  await answer(page).getByText(/on the pile: a letter to Ada/).first().waitFor();
  await answer(other).getByText(/on the pile: a letter to Ada/).first().waitFor();
  await heard(page);
  assert.equal(await page.locator(".approval").count(), 0);
  assert.deepEqual(await questions(page), ["send a letter to Ada"]);
});

story("eight tabs use one session, and all show the same messages in the end", tall, async (page, { another }) => {
  await sayAndHear(page, "hello");
  const tabs = [page, ...(await Promise.all(Array.from({ length: 7 }, () => another(page.url()))))];
  await Promise.all(tabs.map((tab) => tab.locator(".question").first().waitFor()));
  await Promise.all(tabs.map((tab, n) => say(tab, `tab ${n} speaks`)));
  const isDone = () => document.querySelectorAll(".turn").length === 9 && !document.querySelector('.turn:not([data-progress="ended"])');
  await Promise.all(tabs.map((tab) => tab.waitForFunction(isDone, undefined, { timeout: 90_000 })));
  const shown = await Promise.all(tabs.map(questions));
  assert.deepEqual([...shown[0]].sort(), ["hello", ...tabs.map((_, n) => `tab ${n} speaks`)].sort());
  for (const one of shown) assert.deepEqual(one, shown[0]);
  await reload(page);
  assert.deepEqual(await questions(page), shown[0]);
});

story("the list shows sessions that other tabs create, rename and delete", desk, async (page, { another }) => {
  const other = await another();
  await sayAndHear(other, "from the other tab");
  await listed(page, "from the other tab").waitFor();
  await listed(page, "from the other tab").click();
  await page.locator(".question p", { hasText: "from the other tab" }).waitFor();
  await listed(other, "from the other tab").hover();
  await other.locator(".bar").getByRole("button", { name: /More about/ }).click();
  await other.getByRole("menuitem", { name: "Delete" }).click();
  await listed(page, "from the other tab").waitFor({ state: "detached" });
});

story("a reload during an answer loses no question, and the conversation can continue", desk, async (page) => {
  await sayAndHear(page, "hello");
  await say(page, "a long answer");
  await page.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  await reload(page);
  await page.locator(".turn:last-child").getByText("Interrupted").waitFor();
  assert.deepEqual(await questions(page), ["hello", "a long answer"]);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => /open|endings/.test(key))), []);
  await page.screenshot({ path: `${artefacts}cut-off.png` });
  await page.getByRole("button", { name: "Continue" }).click();
  await answer(page).getByText(/finds the conversation in order/).waitFor({ timeout: 60_000 });
  await heard(page);
  await reload(page);
  assert.deepEqual(await questions(page), ["hello", "a long answer"]);
  await answer(page).getByText(/finds the conversation in order/).waitFor();
});

story("other tabs show that a tab was closed during an answer", desk, async (page, { another }) => {
  await sayAndHear(page, "hello");
  const other = await another(page.url());
  await other.locator(".question").waitFor();
  await say(other, "a long answer");
  // A question of another tab is shown once it is accepted.
  await page.locator(".turn:last-child .question", { hasText: "a long answer" }).waitFor();
  await page.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  await other.close();
  await page.locator(".turn:last-child").getByText("Interrupted").waitFor();
  await page.getByRole("button", { name: "Continue" }).waitFor();
  assert.deepEqual(await questions(page), ["hello", "a long answer"]);
});

story("a page opened after a crash can continue the turn, and a stopped turn cannot be continued", desk, async (page, { another, context }) => {
  const crashing = await another();
  await sayAndHear(crashing, "hello");
  await say(crashing, "a long answer");
  await crashing.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  const crashed = crashing.waitForEvent("crash");
  (await context.newCDPSession(crashing)).send("Page.crash").catch(() => {});
  await crashed;
  await listed(page, "hello").getByText("running").waitFor({ state: "detached" });
  await listed(page, "hello").click();
  await reload(page);
  await page.locator(".turn:last-child").getByText("Interrupted").waitFor();
  assert.deepEqual(await questions(page), ["hello", "a long answer"]);
  await page.getByRole("button", { name: "Continue" }).click();
  await answer(page).getByText(/finds the conversation in order/).waitFor({ timeout: 60_000 });
  await heard(page);
  await say(page, "a long answer again");
  await page.waitForFunction(() => document.querySelector(".turn:last-child .answer")?.textContent.length > 40);
  await page.keyboard.press("Escape");
  await heard(page);
  await reload(page);
  await page.locator(".turn:last-child").getByText("Stopped", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Continue" }).count(), 0);
});

story("waiting messages show their place and can be cancelled", desk, async (page) => {
  await say(page, "a long answer");
  await page.waitForFunction(() => document.querySelector(".answer")?.textContent.length > 20);
  await say(page, "first in line");
  await say(page, "second in line");
  await page.locator(".turn", { hasText: "first in line" }).getByText("Queued, 1 ahead").waitFor();
  await page.locator(".turn", { hasText: "second in line" }).getByText("Queued, 2 ahead").waitFor();
  await page.screenshot({ path: `${artefacts}queued.png` });
  await page.locator(".turn", { hasText: "first in line" }).getByRole("button", { name: "Take back" }).click();
  await page.locator(".question", { hasText: "first in line" }).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "first in line");
  await page.getByRole("button", { name: "Stop" }).click();
  await heard(page);
  assert.deepEqual(await questions(page), ["a long answer", "second in line"]);
});

story("on a full disk a message is kept with an error, and is sent when there is room", desk, async (page) => {
  await sayAndHear(page, "hello");
  await page.evaluate(() => {
    window.put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = () => {
      throw new DOMException("no room", "QuotaExceededError");
    };
  });
  await page.getByRole("textbox", { name: "Message" }).fill("is there room?");
  await page.keyboard.press("Enter");
  const alert = page.locator(".turn").getByRole("alert");
  await alert.getByText("Not sent").waitFor();
  await page.screenshot({ path: `${artefacts}quota.png` });
  assert.match(await alert.innerText(), /full|quota|room|space/i);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "is there room?");
  await page.evaluate(() => (IDBObjectStore.prototype.put = window.put));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll('.turn[data-progress="ended"] .actions').length === 2);
  assert.deepEqual(await questions(page), ["hello", "is there room?"]);
});

story("the page still works after its server has stopped", desk, async (page, { faults }) => {
  await page.context().setOffline(true);
  await sayAndHear(page, "hello");
  await newSession(page);
  await sayAndHear(page, "what time is it");
  await page.getByRole("searchbox").fill("hello");
  await page.getByRole("list", { name: "Search all sessions" }).getByRole("link").first().click();
  await page.locator(".question p", { hasText: "hello" }).waitFor();
  // The browser itself requests the icon again.
  assert.deepEqual(faults.splice(0).filter((fault) => !/ERR_INTERNET_DISCONNECTED/.test(fault)), []);
});
