// Conversations in the web UI, in a real browser.
import assert from "node:assert/strict";
import { after } from "node:test";
import { contrasts } from "../contrast.mjs";
import {
  answer,
  artefacts,
  deleteByMouse,
  desk,
  heard,
  listed,
  newSession,
  open,
  phone,
  reload,
  say,
  sayAndHear,
} from "../page.mjs";

const { story, close } = await open();
after(close);

story("an answer appears piece by piece and is still there after a reload", desk, async (page) => {
  await page.evaluate(() => {
    window.seen = new Set();
    const look = () =>
      window.seen.add(document.querySelector(".turn:last-child .answer")?.textContent ?? "");
    new MutationObserver(look).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  await sayAndHear(page, "hello");
  const text = await answer(page).innerText();
  const seen = await page.evaluate(() => [...window.seen].filter(Boolean));
  assert.ok(seen.length > 2, `only ${seen.length} texts were seen`);

  await reload(page);
  assert.equal(await listed(page, "hello").count(), 1);
  assert.equal(await page.locator(".question p").innerText(), "hello");
  assert.equal(await answer(page).innerText(), text);
});

story("a second session is separate from the first", desk, async (page) => {
  await sayAndHear(page, "hello");
  await newSession(page);
  await sayAndHear(page, "what time is it");
  assert.deepEqual(await page.locator(".question p").allInnerTexts(), ["what time is it"]);
  await listed(page, "hello").click();
  await page.locator(".question p", { hasText: "hello" }).waitFor();
  assert.deepEqual(await page.locator(".question p").allInnerTexts(), ["hello"]);
  assert.equal(await page.getByRole("list", { name: "Sessions" }).getByRole("listitem").count(), 2);
});

story(
  "a tool call shows its name and its result, and a failing one says so",
  desk,
  async (page) => {
    await sayAndHear(page, "what time is it");
    const clock = page.getByRole("group", { name: "Tool clock" });
    assert.equal(await clock.locator(".state").innerText(), "done");
    assert.match(await clock.innerText(), /\d\d:\d\d/);
    await sayAndHear(page, "failing tool");
    const failing = page.getByRole("group", { name: "Tool always_fails" });
    assert.equal(await failing.locator(".state").innerText(), "failed");
    assert.match(await failing.innerText(), /on purpose/);

    const shown = await page.locator('[role="log"]').innerText();
    await reload(page);
    assert.equal(await page.locator('[role="log"]').innerText(), shown);
  },
);

story(
  "a message sent while another runs waits in the queue, then is answered",
  desk,
  async (page) => {
    await say(page, "long answer");
    await answer(page).getByText(/\w/).first().waitFor();
    await say(page, "hello");
    await page
      .locator('.turn:last-child[data-progress="queued"]')
      .getByText(/queued/i)
      .waitFor();
    await page.keyboard.press("Escape");
    await heard(page);
    assert.deepEqual(await page.locator(".question p").allInnerTexts(), ["long answer", "hello"]);
    assert.ok(await answer(page).innerText());
  },
);

story(
  "Esc stops a long answer, and its text is kept, even after a reload",
  desk,
  async (page) => {
    await say(page, "long answer");
    await page.waitForFunction(() => document.querySelector(".answer")?.textContent.length > 40);
    await page.keyboard.press("Escape");
    await heard(page);
    await page.locator(".turn").getByText("Stopped", { exact: true }).waitFor();
    const text = await answer(page).innerText();
    assert.ok(text.length > 20, text);
    await reload(page);
    assert.equal(await answer(page).innerText(), text);
  },
);

story(
  "a deleted session is gone when its toast has ended, and after a reload",
  desk,
  async (page) => {
    await sayAndHear(page, "hello");
    await deleteByMouse(page, "hello");
    await listed(page, "hello").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" });
    await reload(page);
    await page.getByRole("heading", { name: /one gate/i }).waitFor();
    assert.equal(await listed(page, "hello").count(), 0);
  },
);

story("a session deleted just before the page is left is gone too", desk, async (page) => {
  await sayAndHear(page, "hello");
  const address = page.url();
  await deleteByMouse(page, "hello");
  await reload(page);
  assert.equal(await listed(page, "hello").count(), 0);
  await page.goto(address);
  await reload(page);
  assert.equal(await page.locator(".question").count(), 0);
});

story("undo restores a deleted session, even after a reload", desk, async (page) => {
  await sayAndHear(page, "hello");
  await deleteByMouse(page, "hello");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".question p", { hasText: "hello" }).waitFor();
  await reload(page);
  assert.equal(await listed(page, "hello").count(), 1);
  assert.equal(await page.locator(".question p").innerText(), "hello");
});

story("sessions are created, used, opened and deleted with the keyboard only", desk, async (page) => {
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("Escape", "n");
  await page.keyboard.type("hello");
  await press("Enter");
  await heard(page);
  await press("Escape", "n");
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
  await page.keyboard.type("one line");
  await press("Shift+Enter");
  await page.keyboard.type("and another");
  await press("Enter");
  await heard(page);
  assert.equal(await listed(page, /^hello$/).count(), 1);
  assert.equal(await page.locator(".question p").innerText(), "one line\nand another");

  await press("Escape", "ArrowDown", "Enter");
  await page.locator(".question p", { hasText: "hello" }).waitFor();
  await press("Escape", "Delete");
  await listed(page, "hello").waitFor({ state: "detached" });
  await page.locator(".question p", { hasText: "one line" }).waitFor();
  const focused = await page.evaluate(() => document.activeElement?.getAttribute("aria-current"));
  assert.equal(focused, "page", "the focus moves to the remaining session");
});

story("a refused message shows the reason, and its text is kept", desk, async (page) => {
  const tooLong = "x".repeat(300);
  await page.evaluate((id) => (location.hash = `#/s/${id}`), tooLong);
  await page.getByRole("alert").getByText("This session could not be read").waitFor();
  await say(page, "hello");
  await page.locator(".turn").getByRole("alert").getByText("Not sent").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "hello");
});

story("a draft stays with its session", desk, async (page) => {
  await sayAndHear(page, "hello");
  await page.getByRole("textbox", { name: "Message" }).fill("half a thought");
  await newSession(page);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "");
  await listed(page, "hello").click();
  await page.locator(".question").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "half a thought");
});

story("on a phone nothing is wider than the screen", phone, async (page) => {
  const overflow = () =>
    page.evaluate(() =>
      [
        document.documentElement,
        ...document.querySelectorAll(".scroller, .side, .sessions, .bar, .composer"),
      ]
        .filter((box) => box.scrollWidth > box.clientWidth)
        .map((box) => box.className || box.tagName),
    );
  assert.deepEqual(await overflow(), []);
  await sayAndHear(page, `long answer about ${"w".repeat(200)}`);
  await sayAndHear(page, "what time is it");
  assert.deepEqual(await overflow(), []);
  assert.equal(await page.evaluate(() => innerWidth), phone.viewport.width);
  await page.screenshot({ path: `${artefacts}ui-phone.png` });
  await page.getByRole("button", { name: "Show sessions" }).click();
  await page.getByRole("button", { name: "New session", exact: true }).waitFor();
  assert.deepEqual(await overflow(), []);
});

for (const colorScheme of ["light", "dark"]) {
  story(`the ${colorScheme} look can be read`, { ...desk, colorScheme }, async (page) => {
    await page.screenshot({ path: `${artefacts}ui-${colorScheme}-welcome.png` });
    await sayAndHear(page, "think about canal locks");
    await sayAndHear(page, "failing tool");
    const found = await contrasts(page);
    assert.ok(found.length > 8, `only ${found.length} texts were measured`);
    assert.deepEqual(
      found.filter(({ ratio }) => ratio < 4.5),
      [],
    );
    await page.screenshot({ path: `${artefacts}ui-${colorScheme}.png` });
  });
}
