// The panel beside the conversation: the parts of the next request, the state, the files and the memory.
import assert from "node:assert/strict";
import { after } from "node:test";
import {
  answer,
  artefacts,
  newSession,
  open,
  phone,
  reload,
  say,
  sayAndHear,
  storageOf,
} from "../page.mjs";

const { story, close, url } = await open();
after(close);

const desk = { viewport: { width: 1300, height: 850 } };
const settings = (choices) => ({ storageState: storageOf(url, { "lockgate.settings": choices }) });

const panel = (page) => page.getByRole("complementary", { name: "Inside this session" });
const openPanel = async (page, tab = "Context") => {
  await page.getByRole("button", { name: "Inside this session" }).click();
  await panel(page).getByRole("tab", { name: tab }).click();
};
const shoot = (page, name) => page.screenshot({ path: `${artefacts}panel-${name}.png` });
const stateOf = (page, name) => page.getByRole("group", { name: `Tool ${name}` }).last().locator(".state");
const numberIn = (text) => Number(text.replace(/[^\d]/g, ""));

story("the context window is shown by part, and the parts add up to the total", desk, async (page) => {
  await sayAndHear(page, "hello");
  await openPanel(page);
  const caption = panel(page).locator("figcaption");
  await caption.waitFor();
  const total = numberIn(await caption.innerText());
  const sums = (await panel(page).locator(".key b").allInnerTexts()).map(numberIn);
  const pieces = (await panel(page).locator(".part b").allInnerTexts()).map(numberIn);
  const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
  assert.equal(sum(sums), total);
  assert.equal(sum(pieces), total);
  const kinds = await panel(page).locator(".key li").allInnerTexts();
  assert.deepEqual(kinds.map((text) => text.replace(/[\d,\s]/g, "")), ["System", "Tools", "Messages"]);
  await panel(page).getByText(/^\d+ tools: clock, add/).click();
  await panel(page).locator("pre", { hasText: "The time now, on this device." }).waitFor();
  await panel(page).getByText("You are a brief").first().click();
  await panel(page).locator("pre", { hasText: "letter-writing" }).waitFor();
  await shoot(page, "context");
});

story("the panel shows a new message of the conversation at once", desk, async (page, { context }) => {
  await sayAndHear(page, "hello");
  await openPanel(page);
  await panel(page).locator(".part", { hasText: "hello" }).first().waitFor();
  await sayAndHear(page, "what time is it");
  await panel(page).locator(".part", { hasText: "clock({})" }).waitFor();
  const other = await context.newPage();
  await other.goto(page.url());
  await other.locator(".turn").nth(1).waitFor();
  await sayAndHear(other, "said in another tab");
  await panel(page).locator(".part", { hasText: "said in another tab" }).first().waitFor();
});

story(
  "compacting shows the saved tokens and the summarised messages, and can be undone",
  { ...desk, ...settings({ compaction: { when: "overflow", keepMessages: 2 } }) },
  async (page) => {
    for (const text of ["the first thing", "a long answer", "the third thing", "the fourth thing"])
      await sayAndHear(page, text);
    await openPanel(page);
    const pieces = () => panel(page).locator(".part .first").allInnerTexts();
    await panel(page).locator(".part", { hasText: "the fourth thing" }).first().waitFor();
    const before = await pieces();
    await panel(page).getByRole("button", { name: "Compact now" }).click();
    await panel(page).getByText(/8 messages became \d+: [\d,]+ tokens are now [\d,]+\./).waitFor();
    const summary = panel(page).locator(".part", { hasText: "stands for 6 messages" });
    await summary.waitFor();
    assert.ok((await pieces()).length < before.length);
    await summary.getByRole("button", { name: "What it stands for" }).click();
    await summary.locator("pre", { hasText: "user: the first thing" }).waitFor();
    await shoot(page, "compacted");
    await panel(page).getByRole("button", { name: "Undo the last summary" }).click();
    await panel(page).getByText("The messages are back as they were said.").waitFor();
    await summary.waitFor({ state: "detached" });
    assert.deepEqual(await pieces(), before);
  },
);

story("a result that is shown in part names the path of the whole, and the whole can be read", desk, async (page) => {
  await sayAndHear(page, "a report please");
  await openPanel(page);
  const evicted = panel(page).locator(".part", { hasText: /all of it is at tool-results\// });
  await evicted.waitFor();
  await evicted.getByRole("button", { name: "Read the whole" }).click();
  const whole = await evicted.getByLabel("Read the whole").innerText();
  assert.match(whole, /boat 1 of 288/);
  assert.match(whole, /boat 150 of 288/);
  assert.match(whole, /boat 288 of 288/);
  await shoot(page, "evicted");
});

story("rules and mode changed in the panel apply to the tools", desk, async (page) => {
  await sayAndHear(page, "what time is it");
  assert.equal(await stateOf(page, "clock").innerText(), "done");
  await openPanel(page, "State");
  const add = async (behavior, tool, content = "") => {
    await panel(page).getByRole("combobox", { name: "Rule" }).selectOption(behavior);
    await panel(page).getByRole("textbox", { name: "Tool" }).fill(tool);
    await panel(page).getByRole("textbox", { name: "Only for" }).fill(content);
    await panel(page).getByRole("button", { name: "Add rule" }).click();
  };
  const rules = panel(page).getByRole("list", { name: "Rules" }).getByRole("listitem");
  await add("deny", "clock");
  await rules.filter({ hasText: "Deny clock" }).waitFor();
  await add("allow", "send_letter", "bob");
  await rules.filter({ hasText: "Allow send_letter(bob)" }).waitFor();
  await shoot(page, "permissions");
  await sayAndHear(page, "what time is it");
  assert.equal(await stateOf(page, "clock").innerText(), "denied");
  await sayAndHear(page, 'use send_letter {"text": "hi", "to": "bob"}');
  assert.equal(await stateOf(page, "send_letter").innerText(), "done");
  await panel(page).getByRole("button", { name: "Remove rule clock" }).click();
  await rules.filter({ hasText: "Deny clock" }).waitFor({ state: "detached" });
  await panel(page).getByRole("combobox", { name: "Mode" }).selectOption("explore");
  await panel(page).locator(".tree", { hasText: "permission_context" }).waitFor();
  await sayAndHear(page, "what time is it");
  assert.equal(await stateOf(page, "clock").innerText(), "done");
  await sayAndHear(page, 'use send_letter {"text": "hi", "to": "eve"}');
  assert.equal(await stateOf(page, "send_letter").innerText(), "denied");
  await reload(page);
  await openPanel(page, "State");
  await rules.filter({ hasText: "Allow send_letter(bob)" }).waitFor();
  assert.equal(await panel(page).getByRole("combobox", { name: "Mode" }).inputValue(), "explore");
});

story("tool groups, skills and plan mode are switched in the panel", desk, async (page) => {
  await sayAndHear(page, "hello");
  await openPanel(page, "State");
  const on = async (name) => {
    const it = panel(page).getByRole("switch", { name });
    await it.click();
    await panel(page).getByRole("switch", { name, checked: true }).waitFor();
  };
  const off = async (name) => {
    await panel(page).getByRole("switch", { name }).click();
    await panel(page).getByRole("switch", { name, checked: false }).waitFor();
  };
  await sayAndHear(page, "use device");
  assert.equal(await page.getByRole("group", { name: "Tool device" }).count(), 0, "the agent has no such tool");
  await on("device What this device is");
  await sayAndHear(page, "use device");
  assert.match(await page.getByRole("group", { name: "Tool device" }).innerText(), /Chrome/);
  await off("device What this device is");
  await on("letter-writing");
  await panel(page).getByRole("tab", { name: "Context" }).click();
  await panel(page).getByText("Reminders").first().waitFor();
  await panel(page).locator(".part summary:has(.part-reminder)").last().click();
  await panel(page).locator("pre", { hasText: "letter-writing" }).waitFor();
  await panel(page).getByRole("tab", { name: "State" }).click();
  await off("letter-writing");
  await on("Only looking and planning");
  await sayAndHear(page, 'use write_file {"path": "a.md", "content": "x"}');
  assert.equal(await stateOf(page, "write_file").innerText(), "denied");
  await shoot(page, "planning");
  await off("Only looking and planning");
  await sayAndHear(page, 'use write_file {"path": "a.md", "content": "x"}');
  assert.equal(await stateOf(page, "write_file").innerText(), "done");
});

story("the whole state is shown as a tree", desk, async (page) => {
  await sayAndHear(page, "a word to be found");
  await openPanel(page, "State");
  const tree = panel(page).locator("section", { hasText: "AgentState" }).last();
  for (const name of ["context", "0", "content"])
    await tree.getByText(name, { exact: true }).first().click();
  await tree.getByText("0", { exact: true }).nth(1).click();
  await tree.getByText("a word to be found").first().waitFor();
  for (const name of ["format", "version", "session_id", "permission_context", "plan_mode_context"])
    await tree.getByText(name, { exact: true }).first().waitFor();
  await shoot(page, "state");
});

story("files are made, edited, seen by the agent, and deleted", desk, async (page) => {
  await sayAndHear(page, "hello");
  await openPanel(page, "Files");
  await panel(page).getByText("No files yet").waitFor();
  await panel(page).getByRole("textbox", { name: "New file" }).fill("notes/boat.md");
  await panel(page).getByRole("button", { name: "Make" }).click();
  const text = panel(page).getByRole("textbox", { name: "Text of notes/boat.md" });
  await text.fill("The boat is called Neptune.");
  await panel(page).getByRole("button", { name: "Save" }).click();
  await panel(page).getByText("Saved notes/boat.md.").waitFor();
  await sayAndHear(page, 'use read_file {"path": "notes/boat.md"}');
  assert.match(await answer(page).innerText(), /Neptune/);
  await sayAndHear(page, 'use edit_file {"path": "notes/boat.md", "old_string": "Neptune", "new_string": "Triton"}');
  await page.waitForFunction(() => document.querySelector(".editor textarea")?.value.includes("Triton"));
  await shoot(page, "files");
  await reload(page);
  await openPanel(page, "Files");
  await panel(page).getByRole("button", { name: "notes/boat.md" }).click();
  assert.equal(await text.inputValue(), "The boat is called Triton.");
  await panel(page).getByRole("textbox", { name: "New file" }).fill("../up.md");
  await panel(page).getByRole("button", { name: "Make" }).click();
  await panel(page).getByRole("alert").waitFor();
  await panel(page).getByRole("button", { name: "Delete", exact: true }).click();
  await panel(page).getByRole("button", { name: "Delete for good" }).click();
  await panel(page).getByText("Deleted notes/boat.md.").waitFor();
  await panel(page).getByText("No files yet").waitFor();
});

story("memory can be read and corrected, and the next session gets it", desk, async (page) => {
  await sayAndHear(page, "My name is Ada, I live in Bern and I like quiet canals");
  await openPanel(page, "Memory");
  await panel(page).getByRole("button", { name: /^memory\/\d{4}-\d\d-\d\d\.md$/ }).click();
  const notes = panel(page).getByRole("textbox", { name: /^Text of memory/ });
  await notes.waitFor();
  assert.match(await notes.inputValue(), /My name is Ada/);
  await notes.fill("- The user is Ada, of Basel\n");
  await panel(page).getByRole("button", { name: "Save" }).click();
  await panel(page).getByText(/^Saved memory/).waitFor();
  await panel(page).getByRole("button", { name: "Write MEMORY.md" }).click();
  await panel(page).getByRole("textbox", { name: "Text of MEMORY.md" }).fill("- The user keeps a lock\n");
  await panel(page).getByRole("button", { name: "Save" }).click();
  await panel(page).getByText("Saved MEMORY.md.").waitFor();
  await shoot(page, "memory");
  await newSession(page);
  await panel(page).getByRole("tab", { name: "Context" }).click();
  await panel(page).getByText("You are a brief").first().click();
  const system = await panel(page).locator("pre", { hasText: "You are a brief" }).innerText();
  assert.match(system, /of Basel/);
  assert.match(system, /keeps a lock/);
});

story(
  "with a store in memory the panel says which files it cannot show",
  { ...desk, ...settings({ store: "memory" }) },
  async (page) => {
    await sayAndHear(page, "hello");
    await openPanel(page, "Files");
    await panel(page).getByText("belong to each session").waitFor();
  },
);

story("a setting that cannot be changed now shows the reason", desk, async (page) => {
  await say(page, 'use send_letter {"text": "hi"}');
  await openPanel(page, "State");
  await page.waitForFunction(() => document.querySelector('.turn:last-child[data-progress="ended"]'));
  await panel(page).getByRole("switch", { name: "letter-writing" }).click();
  const alert = panel(page).getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /answer|wait/i);
  await panel(page).getByRole("switch", { name: "letter-writing", checked: false }).waitFor();
});

story("the panel is opened, used and closed with the keyboard only", desk, async (page) => {
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  await sayAndHear(page, "hello");
  await press("Escape", "i");
  await panel(page).waitFor();
  await page.waitForFunction(() => document.activeElement?.id === "tab-context");
  await press("ArrowRight");
  assert.equal(await focused(), "State");
  await panel(page).getByText("Permissions").waitFor();
  await press("Tab", "Tab");
  await page.keyboard.type("e");
  await page.waitForFunction(() => document.activeElement?.value === "explore");
  await page.locator("#tab-state").focus();
  await press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight");
  assert.equal(await focused(), "Context", "after the last tab comes the first");
  await press("Escape");
  await panel(page).waitFor({ state: "detached" });
  const label = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  assert.equal(label, "Inside this session", "the focus is not back on the button of the panel");
});

story("on a phone the panel is over the conversation, and nothing is wider than the screen", phone, async (page) => {
  await sayAndHear(page, `a report about ${"w".repeat(200)}`);
  for (const tab of ["Context", "State", "Files", "Memory"]) {
    if (tab === "Context") await openPanel(page);
    else await panel(page).getByRole("tab", { name: tab }).click();
    await panel(page).getByRole("tabpanel", { name: tab }).waitFor();
    await panel(page).getByText("Reading", { exact: true }).waitFor({ state: "detached" });
    const wide = await page.evaluate(() =>
      [document.documentElement, ...document.querySelectorAll(".inspector, .view, .tabs")]
        .filter((box) => box.scrollWidth > box.clientWidth)
        .map((box) => box.className || box.tagName),
    );
    assert.deepEqual(wide, [], tab);
    await shoot(page, `phone-${tab.toLowerCase()}`);
  }
  const { width } = await panel(page).boundingBox();
  assert.ok(width > 0.9 * phone.viewport.width && width <= phone.viewport.width, `${width}`);
  await page.getByRole("button", { name: "Close" }).click({ position: { x: 5, y: 400 } });
  await panel(page).waitFor({ state: "detached" });
});
