// The keyboard: what a person types is text, and no key costs or destroys anything.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, desk, heard, listed, newSession, open, reload, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const message = (page) => page.getByRole("textbox", { name: "Message" });
const isInMessage = (page) => page.evaluate(() => document.activeElement?.matches(".composer textarea"));
const typed = "remember: nine in Rome / i e r n";

/** The turns and the rows of the list: what a shortcut could have changed. */
const state = async (page) => [page.url(), await page.locator(".turn").count(), await page.locator(".sessions li").count(), await page.locator(".panel, dialog, .editor").count()];

story("after a load, typed text goes to the message field and does nothing else", desk, async (page) => {
  assert.ok(await isInMessage(page), "the field has the focus");
  await sayAndHear(page, "hello");
  const said = await answer(page).innerText();
  await page.reload();
  await page.locator(".turn .actions").waitFor();
  const before = await state(page);
  await page.keyboard.type(typed);
  assert.equal(await message(page).inputValue(), typed);
  assert.deepEqual(await state(page), before);
  assert.equal(await answer(page).innerText(), said);
});

story("typed text goes to the message field after a session was opened, after a click beside it, and with the focus on a button", desk, async (page) => {
  await sayAndHear(page, "hello");
  await newSession(page);
  await sayAndHear(page, "another");
  await listed(page, "hello").click();
  await page.locator(".question p", { hasText: "hello" }).waitFor();
  assert.ok(await isInMessage(page), "opening a session focuses the field");
  for (const leave of [
    () => page.locator(".turn .answer").click({ position: { x: 5, y: 5 } }),
    () => page.getByRole("button", { name: "New session from here" }).focus(),
    () => page.evaluate(() => document.activeElement.blur()),
  ]) {
    await leave();
    assert.equal(await isInMessage(page), false);
    const before = await state(page);
    await page.keyboard.type(typed);
    assert.equal(await message(page).inputValue(), typed);
    assert.deepEqual(await state(page), before);
    await message(page).fill("");
  }
});

story("in the list of sessions the letters are shortcuts, and none of them runs or changes an answer", desk, async (page) => {
  await sayAndHear(page, "hello");
  await page.getByRole("button", { name: "Answer again" }).waitFor();
  const legend = await page.locator("nav .legend").innerText();
  assert.doesNotMatch(legend, /again|edit/);
  await page.keyboard.press("Escape");
  const before = await state(page);
  for (const key of ["r", "e", "d", "x", "s"]) await page.keyboard.press(key);
  assert.deepEqual(await state(page), before);
  assert.equal(await message(page).inputValue(), "");
  await page.keyboard.press("n");
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
  assert.ok(await isInMessage(page));
  await page.keyboard.type("hello again");
  await page.keyboard.press("Enter");
  await heard(page);
});
