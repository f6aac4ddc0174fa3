// Messages that cannot be stored, sent or answered: the reason is shown, and no text is lost.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, heard, listed, newSession, open, reload, say, sayAndHear, storageOf } from "../page.mjs";

const { story, close, url } = await open();
after(close);

const message = (page) => page.getByRole("textbox", { name: "Message" });
const alertOf = (page) => page.locator(".turn").getByRole("alert");
const questions = (page) => page.locator(".question p").allInnerTexts();
const shoot = (page, name) => page.screenshot({ path: `${artefacts}failure-${name}.png` });
const inLocalStorage = { ...desk, storageState: storageOf(url, { "lockgate.settings": { store: "localstorage" } }) };

/** Fills localStorage to the last character, as another page of the same site could. */
const fill = (page) =>
  page.evaluate(() => {
    for (let n = 4_000_000, at = 0; n > 0; at += 1) {
      try {
        localStorage.setItem(`junk-${at}`, "x".repeat(n));
      } catch {
        n = Math.floor(n / 2);
      }
    }
  });
const makeRoom = (page) =>
  page.evaluate(() => {
    for (const key of Object.keys(localStorage)) if (/^junk/.test(key)) localStorage.removeItem(key);
  });

/** IndexedDB throws the error of a full disk, until `putBack`. */
const breakIndexedDb = (page) =>
  page.evaluate(() => {
    window.put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = () => {
      throw new DOMException("no room", "QuotaExceededError");
    };
  });
const putBack = (page) => page.evaluate(() => (IDBObjectStore.prototype.put = window.put));

/** Lets calls wait for their lock until `release`, so that several are sent before the first fails. */
const holdCalls = (page) =>
  page.evaluate(() => {
    const released = new Promise((resolve) => (window.release = resolve));
    const request = LockManager.prototype.request;
    LockManager.prototype.request = function (...args) {
      return released.then(() => request.apply(this, args));
    };
  });

/** Waits until the page has heard that the failed call has no session: the news that took the error away. */
const settled = (page) => page.locator('.sessions[aria-busy="false"]').waitFor({ state: "attached" });

story("the first message of a new session on a full localStorage stays with its error, and can be sent again", inLocalStorage, async (page) => {
  await fill(page);
  // The error must still be there after everything that follows it, so each text that was shown is noted.
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => window.seen.push(document.querySelector(".turn [role=alert]") !== null)).observe(document.body, { subtree: true, childList: true });
  });
  await say(page, "a thought that matters");
  const alert = alertOf(page);
  await alert.getByText("Not sent").waitFor();
  await page.evaluate(() => new Promise((resolve) => navigator.locks.request("lockgate/none", () => setTimeout(resolve, 0))));
  await settled(page);
  assert.match(await alert.innerText(), /The storage is full: localStorage takes nothing more/);
  assert.match(await alert.innerText(), /Delete sessions that you do not need, or choose another storage in the settings/);
  assert.equal(await message(page).inputValue(), "a thought that matters");
  await shoot(page, "localstorage-full");
  await alert.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("combobox", { name: "Sessions are kept in" }).waitFor();
  await page.keyboard.press("Escape");
  assert.deepEqual(await questions(page), ["a thought that matters"]);
  const seen = await page.evaluate(() => window.seen);
  assert.ok(seen.lastIndexOf(false) < seen.indexOf(true), "the error went away");
  await makeRoom(page);
  await alert.getByRole("button", { name: "Try again" }).click();
  await heard(page);
  assert.deepEqual(await questions(page), ["a thought that matters"]);
  assert.equal(await message(page).inputValue(), "");
  await reload(page);
  assert.deepEqual(await questions(page), ["a thought that matters"]);
});

story("two first messages that a full IndexedDB refuses are both kept, with an image", desk, async (page) => {
  await breakIndexedDb(page);
  await holdCalls(page);
  const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
  await page.locator('.composer input[type="file"]').setInputFiles([{ name: "pixel.png", mimeType: "image/png", buffer: pixel }]);
  await page.getByRole("button", { name: "Remove pixel.png" }).waitFor();
  await message(page).fill("first");
  await page.keyboard.press("Enter");
  await page.locator(".question p").getByText("first").waitFor();
  await message(page).fill("second");
  await page.keyboard.press("Enter");
  await page.locator(".question p").getByText("second").waitFor();
  await page.evaluate(() => window.release());
  await page.waitForFunction(() => document.querySelectorAll(".turn [role=alert]").length === 2);
  assert.deepEqual(await questions(page), ["first", "second"]);
  assert.match(await alertOf(page).first().innerText(), /The storage is full: IndexedDB takes nothing more/);
  // The first is back in the composer, with its image. The second is only in the conversation.
  assert.equal(await message(page).inputValue(), "first");
  await page.getByRole("button", { name: "Remove pixel.png" }).waitFor();
  await shoot(page, "indexeddb-full");
  await putBack(page);
  await message(page).press("Enter");
  await page.locator(".turn", { hasText: "first" }).locator(".actions").waitFor();
  assert.deepEqual(await questions(page), ["first", "second"], "the message that is only in the conversation is still there");
  assert.equal(await page.locator(".question img").count(), 1);
  await page.locator(".turn", { hasText: "second" }).getByRole("button", { name: "Try again" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".turn .actions").length === 2);
  await reload(page);
  assert.deepEqual(await questions(page), ["first", "second"]);
});

story(
  "where the browser forbids storage, a first message stays with its error, and another storage can be chosen",
  {
    ...desk,
    before: (context) =>
      context.addInitScript(() => {
        IDBFactory.prototype.open = () => {
          throw new DOMException("storage is forbidden", "SecurityError");
        };
      }),
  },
  async (page) => {
    await say(page, "is anybody there?");
    const alert = alertOf(page);
    await alert.getByText("Not sent").waitFor();
    assert.match(await alert.innerText(), /If the browser forbids this site to store data, allow it, or choose another storage/);
    assert.equal(await message(page).inputValue(), "is anybody there?");
    await shoot(page, "storage-forbidden");
    await alert.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("combobox", { name: "Sessions are kept in" }).selectOption("memory");
    await page.getByRole("button", { name: "Use these settings" }).click();
    await page.getByText("These settings are in use.").waitFor();
    await page.getByRole("button", { name: "Close settings" }).click();
    assert.equal(await message(page).inputValue(), "is anybody there?");
    await message(page).press("Enter");
    await heard(page);
    assert.deepEqual(await questions(page), ["is anybody there?"]);
  },
);

story("messages that could not be stored are in the composer after a change of the storage", desk, async (page) => {
  await breakIndexedDb(page);
  await holdCalls(page);
  await say(page, "first");
  await message(page).fill("second");
  await page.keyboard.press("Enter");
  await page.locator(".question p").getByText("second").waitFor();
  await page.evaluate(() => window.release());
  await page.waitForFunction(() => document.querySelectorAll(".turn [role=alert]").length === 2);
  await alertOf(page).first().getByRole("button", { name: "Settings" }).click();
  await page.getByRole("combobox", { name: "Sessions are kept in" }).selectOption("memory");
  await page.getByRole("button", { name: "Use these settings" }).click();
  await page.getByText("These settings are in use.").waitFor();
  await page.getByRole("button", { name: "Close settings" }).click();
  assert.equal(await message(page).inputValue(), "first\nsecond");
});

story("an edited question that cannot be stored is edited further, and the old answer is back", desk, async (page) => {
  await sayAndHear(page, "hello");
  const first = await answer(page).innerText();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const editor = page.getByRole("textbox", { name: "Edit the question" });
  await breakIndexedDb(page);
  await editor.fill("a better question");
  await editor.press("Enter");
  const toast = page.locator(".toast.bad");
  await toast.getByText("The storage is full: IndexedDB takes nothing more").waitFor();
  await editor.waitFor();
  assert.equal(await editor.inputValue(), "a better question");
  assert.equal(await answer(page).innerText(), first);
  await shoot(page, "edit");
  await putBack(page);
  await editor.press("Enter");
  await heard(page);
  await page.locator(".question p").getByText("a better question").waitFor();
});

story("a regeneration that cannot be stored says so, and the old answer is back", desk, async (page) => {
  await sayAndHear(page, "hello");
  const first = await answer(page).innerText();
  await breakIndexedDb(page);
  await page.getByRole("button", { name: "Answer again" }).click();
  await page.locator(".toast.bad").getByText("The storage is full").waitFor();
  await page.getByRole("button", { name: "Answer again" }).waitFor();
  assert.equal(await answer(page).innerText(), first);
  assert.equal(await page.getByRole("textbox", { name: "Edit the question" }).count(), 0);
});

story("an approval that cannot be stored says so, and asks again", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
  await breakIndexedDb(page);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".toast.bad").getByText("The storage is full").waitFor();
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
  await putBack(page);
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer(page).getByText(/on the pile/).first().waitFor();
});

story("a link to a session that does not exist says so, and leads to a new one", desk, async (page, { another }) => {
  await sayAndHear(page, "hello");
  await page.evaluate(() => (location.hash = "#/s/nobody-knows-me"));
  const lost = page.getByRole("alert").filter({ hasText: "There is no such session" });
  await lost.waitFor();
  assert.match(await lost.innerText(), /deleted, or it belongs to another user, another browser or another storage than IndexedDB/);
  assert.equal(await page.locator(".sessions li").count(), 1, "the list has no row for it");
  await shoot(page, "unknown-session");
  await reload(page);
  await lost.waitFor();
  await lost.getByRole("button", { name: "New session" }).click();
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
  const fresh = page.url();
  await reload(page);
  await page.getByRole("heading", { name: /one gate/i }).waitFor();
  assert.equal(page.url(), fresh, "a new session that is loaded again is not lost");
  // In another tab it is only a link.
  const other = await another(fresh);
  await other.getByRole("alert").filter({ hasText: "There is no such session" }).waitFor();
  await sayAndHear(page, "now it exists");
  await reload(other);
  assert.deepEqual(await questions(other), ["now it exists"]);
});

story("a session that another tab deletes is not shown as a new one", desk, async (page, { another }) => {
  await sayAndHear(page, "hello");
  const other = await another();
  await listed(other, /^hello$/).focus();
  await other.keyboard.press("Delete");
  await listed(other, /^hello$/).waitFor({ state: "detached" });
  await page.getByRole("alert").filter({ hasText: "There is no such session" }).waitFor({ timeout: 20_000 });
});
