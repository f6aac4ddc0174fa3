// The page with the keyboard only, on a phone, on a wide screen, and with reduced motion.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, heard, listed, open, phone, reload, say, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const focused = (page) => page.evaluate(() => document.activeElement?.ariaLabel || document.activeElement?.innerText || "");

story("menus, rename, search, approval and regenerate work with the keyboard only", desk, async (page) => {
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("Escape", "n");
  await page.keyboard.type("send a letter to Ada");
  await press("Enter");
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
  for (let n = 0; n < 40 && (await focused(page)) !== "Allow once"; n++) await press("Shift+Tab");
  assert.equal(await focused(page), "Allow once");
  await press("Enter");
  await answer(page).getByText(/on the pile/).first().waitFor();
  await heard(page);

  await press("Escape", "Tab");
  assert.equal(await focused(page), "More about send a letter to Ada");
  await press("Enter");
  await page.waitForFunction(() => document.activeElement?.role === "menuitem" || document.activeElement?.getAttribute("role") === "menuitem");
  assert.equal(await focused(page), "Rename");
  await press("ArrowDown", "ArrowUp", "Enter");
  await page.getByRole("dialog").waitFor();
  await press("Control+a");
  await page.keyboard.type("Letters");
  await press("Enter");
  await listed(page, "Letters").waitFor();

  await press("Escape", "/");
  await page.keyboard.type("pile");
  await page.locator(".hits a").first().waitFor();
  await press("ArrowDown", "Enter");
  await page.locator(".turn[data-sought]").waitFor();
  await press("Escape");
  await page.getByRole("searchbox").focus();
  await press("Escape");
  await page.locator(".sessions").waitFor();
  await press("Escape", "i");
  await page.getByRole("complementary", { name: "Inside this session" }).waitFor();
  await press("i");
  await page.getByRole("complementary", { name: "Inside this session" }).waitFor({ state: "detached" });
});

story("approvals, the side panel and the list of sessions work on a phone", phone, async (page) => {
  await say(page, "send a letter to Ada");
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
  await page.screenshot({ path: `${artefacts}phone-approval.png` });
  const widest = () => page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(await widest(), phone.viewport.width);
  await page.getByRole("button", { name: "Allow once" }).tap();
  await answer(page).getByText(/on the pile/).first().waitFor();
  await heard(page);
  await sayAndHear(page, "work through your tasks");
  await page.getByRole("button", { name: "Inside this session" }).tap();
  await page.getByRole("region", { name: "Tasks" }).getByText("Let the water in").waitFor();
  await page.screenshot({ path: `${artefacts}phone-side.png` });
  await page.getByRole("button", { name: "Close", exact: true }).tap({ position: { x: 10, y: 400 } });
  await page.getByRole("complementary").waitFor({ state: "detached" });
  await sayAndHear(page, "a table in markdown");
  assert.equal(await widest(), phone.viewport.width);
  await page.screenshot({ path: `${artefacts}phone-markdown.png` });
  await page.getByRole("button", { name: "Show sessions" }).tap();
  await listed(page, "send a letter to Ada").waitFor();
  // The drawer is open when it has stopped moving.
  await page.waitForFunction(() => document.querySelector(".side").getBoundingClientRect().left === 0);
  await page.screenshot({ path: `${artefacts}phone-sessions.png` });
});

story("an answer in Markdown shows its table, code with a copy button, and formulas as text", desk, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await sayAndHear(page, "a table in markdown");
  assert.equal(await page.getByRole("cell", { name: "24.0 m" }).count(), 1);
  assert.equal(await page.locator(".markdown li li").count(), 2);
  await answer(page).getByText("$V = l \\cdot w \\cdot h$").waitFor();
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "const next = await gate.open();\nconsole.log(next);");
});

story("a picture can be pasted into a message, and a picture of another site is not loaded", desk, async (page) => {
  await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(40, 30);
    canvas.getContext("2d").fillRect(0, 0, 40, 30);
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([await canvas.convertToBlob()], "black.png", { type: "image/png" }));
    const paste = new ClipboardEvent("paste", { clipboardData: dataTransfer, bubbles: true });
    document.querySelector("textarea").dispatchEvent(paste);
  });
  await page.getByText("black.png").waitFor();
  await sayAndHear(page, "look at ![this](https://elsewhere.example/pixel.png)");
  assert.equal(await page.getByRole("img", { name: "black.png" }).evaluate((img) => img.naturalWidth), 40);
  await answer(page).getByText(/there is an image/).waitFor();
  await reload(page);
  assert.equal(await page.getByRole("img", { name: "black.png" }).evaluate((img) => img.naturalWidth), 40);
});

story("no animations run with prefers-reduced-motion", { ...desk, reducedMotion: "reduce" }, async (page) => {
  await say(page, "a long answer");
  await page.locator(".chamber").waitFor();
  const moving = await page.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
  await page.keyboard.press("Escape");
  await heard(page);
});

story("a wide screen shows all panels", { viewport: { width: 1800, height: 1000 }, colorScheme: "dark" }, async (page) => {
  await sayAndHear(page, "work through your tasks");
  await say(page, "send a letter to Ada");
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
  await page.getByRole("complementary").getByText("Let the water in").waitFor();
});
