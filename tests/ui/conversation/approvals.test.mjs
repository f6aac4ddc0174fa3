// Approvals: what a user sees and decides before a tool may run.
import assert from "node:assert/strict";
import { after } from "node:test";
import { answer, artefacts, desk, fileOf, heard, importFiles, listed, open, reload, say, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const card = (page) => page.getByRole("region", { name: /^May/ });
const button = (page, name) => card(page).getByRole("button", { name, exact: true });

/** The buttons react only after the card has been visible for a moment. */
async function settled(page) {
  await page.waitForFunction(() => document.querySelector(".approval .primary")?.ariaDisabled === "false");
}

async function allow(page, name) {
  await settled(page);
  await button(page, name).click();
}

story("a tool that needs approval shows its exact input, and runs after one approval", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await card(page).waitFor();
  assert.match(await card(page).innerText(), /"text": "a letter to Ada"/);
  await listed(page, "send a letter to Ada").getByText("asks you").waitFor();
  await page.screenshot({ path: `${artefacts}approval.png` });
  await reload(page);
  await card(page).waitFor();
  await allow(page, "Allow once");
  await answer(page).getByText(/on the pile: a letter to Ada/).first().waitFor();
  await heard(page);
  assert.equal(await listed(page, "send a letter to Ada").getByText("asks you").count(), 0);
  await say(page, "send a letter to Bob");
  await card(page).waitFor();
});

story("a tool that is always allowed does not ask again in this session", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await allow(page, "Allow always");
  await answer(page).getByText(/on the pile/).first().waitFor();
  await heard(page);
  await sayAndHear(page, "send a letter to Bob");
  await answer(page).getByText(/on the pile: a letter to Bob/).first().waitFor();
});

story("an input can be changed before it is allowed, but not into invalid JSON", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await button(page, "Change the input").click();
  const field = card(page).getByRole("textbox", { name: "Change the input" });
  await field.fill("{oops");
  await card(page).getByText("This is not JSON").waitFor();
  await page.waitForFunction(() => document.querySelector(".approval [aria-invalid]").ariaInvalid === "true");
  assert.equal(await button(page, "Allow once").getAttribute("aria-disabled"), "true");
  await page.screenshot({ path: `${artefacts}approval-edit.png` });
  await field.fill('{ "text": "other words" }');
  await allow(page, "Allow once");
  await answer(page).getByText(/on the pile: other words/).first().waitFor();
});

story("a denial goes to the model with its reason", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await button(page, "Deny").click();
  await page.keyboard.type("she has moved");
  await page.keyboard.press("Enter");
  await answer(page).getByText(/failed, and I can read why.*she has moved/).waitFor();
  assert.equal(await page.getByRole("group", { name: "Tool send_letter" }).locator(".state").innerText(), "denied");
});

story("a tool that waits for a result from outside gets it from a person, even after a reload", desk, async (page) => {
  await say(page, "ask the keeper when it opens");
  const waiting = page.getByRole("region", { name: /ask_keeper/ });
  await waiting.getByText("ask_keeper waits for a result from outside").waitFor();
  await reload(page);
  await waiting.getByRole("textbox", { name: "The result" }).fill("at eight");
  await page.screenshot({ path: `${artefacts}result-from-outside.png` });
  await waiting.getByRole("button", { name: "Hand it in" }).click();
  await answer(page).getByText(/ask_keeper answered: at eight/).waitFor();
});

story("A-09: an approval shows the exact input and makes invisible characters visible", desk, async (page) => {
  const text = "pay \u202Eeno on\u202C 1\u200B0 \u2066x\u2069 \u{E0041}";
  await say(page, `use send_letter ${JSON.stringify({ text, note: "harmless" })}`);
  await card(page).waitFor();
  const marks = await card(page).locator(".hidden-char").allInnerTexts();
  assert.deepEqual(marks, ["U+202E", "U+202C", "U+200B", "U+2066", "U+2069", "U+E0041"]);
  const shown = await card(page).locator("pre").evaluate((pre) => pre.textContent);
  assert.doesNotMatch(shown, /[\u202a-\u202e\u2066-\u2069\u200b]/);
  assert.match(shown, /"note": "harmless"/);
});

story("X-17: an accidental click cannot approve", desk, async (page) => {
  await page.evaluate(() => {
    // A click hits the card at the moment when it appears, and a script tries to click.
    new MutationObserver(() => {
      const button = document.querySelector(".approval .primary");
      if (!button || window.tried) return;
      window.tried = true;
      const { left, top, width, height } = button.getBoundingClientRect();
      window.place = [left + width / 2, top + height / 2];
      for (let n = 0; n < 20; n++) button.click();
    }).observe(document.body, { subtree: true, childList: true });
  });
  await say(page, "send a letter to Ada");
  await page.waitForFunction(() => window.place);
  await page.mouse.click(...(await page.evaluate(() => window.place)));
  await card(page).waitFor();
  await settled(page);
  await page.evaluate(() => document.querySelector(".approval .primary").click());
  assert.equal(await page.getByText(/on the pile/).count(), 0);
  // After returning to the window, a user needs a moment to look.
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await page.waitForFunction(() => document.querySelector(".approval .primary").ariaDisabled === "true");
  await allow(page, "Allow once");
  await answer(page).getByText(/on the pile/).first().waitFor();
});

const framed = { ...desk, allowed: ["data:", "chrome-error:"], expected: [/frame-ancestors/i, /refused to (frame|display)/i, /ERR_BLOCKED_BY_RESPONSE/] };
story("X-17: no other page can show this one in a frame", framed, async (page) => {
  const [address] = page.url().split("#");
  const failed = page.waitForEvent("requestfailed", { predicate: (request) => request.url() === address }).catch(() => null);
  await page.goto(`data:text/html,<iframe src="${address}"></iframe>`);
  const frame = page.frames().find((one) => one !== page.mainFrame());
  await Promise.race([failed, frame.waitForLoadState("load")]);
  assert.equal(await frame.locator(".app").count(), 0);
  assert.doesNotMatch(frame.url(), /^http/);
});

story("X-18: messages from other windows and pages change nothing", desk, async (page) => {
  await say(page, "send a letter to Ada");
  await card(page).waitFor();
  const toolCallId = await page.evaluate(() => document.querySelector(".turn").dataset.key);
  await page.evaluate((toolCallId) => {
    const wishes = [{ type: "answer", toolCallId, approve: true }, { type: "send", text: "hi" }, "approve", null, { type: "events", events: [] }];
    for (const wish of wishes) {
      postMessage(wish, "*");
      dispatchEvent(new MessageEvent("message", { data: wish, origin: "https://evil.example" }));
    }
  }, toolCallId);
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
  await card(page).waitFor();
  assert.equal(await page.locator(".turn").count(), 1);
});

story("X-05: names that could overwrite properties of the page or its prototypes have no effect", { viewport: { width: 1200, height: 2400 } }, async (page) => {
  const nasty = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const at = "2026-01-02T03:04:05.000Z";
  const use = (name, n) => [
    { id: `q${n}`, role: "user", content: [{ type: "text", text: `# ${name}` }], at },
    { id: `u${n}`, role: "assistant", content: [{ type: "tool_use", id: name, name, input: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'), state: "finished" }], at },
    { id: `r${n}`, role: "tool", content: [{ type: "tool_result", id: name, name, state: "success", output: [{ type: "text", text: "done" }] }], at },
    { id: `a${n}`, role: "assistant", content: [{ type: "text", text: `# app\n\n## ${name}\n\n[x](#app) ![app](x) <a id=app name=getElementById> <form id=documentElement>` }], at },
  ];
  const history = nasty.flatMap(use);
  const state = { format: 1, version: 1, revision: "", session_id: "s", user_id: null, context: history, summary: "", permission_context: { mode: "default", allow_rules: [], ask_rules: [], deny_rules: [], working_directories: [] }, plan_mode_context: { plan_active: false, current_plan_file: null }, tasks_context: { tasks: [] }, tool_context: { activated_groups: [], activated_skills: [] }, shutdown_interrupted: false };
  await importFiles(page, [fileOf("nasty.json", JSON.stringify({ lockgate: 1, title: "__proto__", history, state }))]);
  await page.locator(".turn").nth(3).waitFor();
  assert.deepEqual(await page.evaluate(() => [{}.polluted, [].polluted, (() => {}).polluted]), [undefined, undefined, undefined]);
  // No element with a model's text has an id or name that could shadow a property of the page.
  const named = await page.evaluate(() => [...document.querySelectorAll("#app [id], #app [name]")].map((node) => node.outerHTML));
  assert.deepEqual(named, []);
  assert.match(await page.locator(".tool pre").first().innerText(), /"__proto__": \{\s+"polluted": true/);
  await page.goto(`${page.url().split("#")[0]}#/u/__proto__/s/constructor`);
  await sayAndHear(page, "hello");
  await reload(page);
  assert.equal(await page.locator(".question p").innerText(), "hello");
});
