// How text is laid out: whole words, right-to-left text, and the button that scrolls to the end.
import assert from "node:assert/strict";
import { after } from "node:test";
import { artefacts, desk, documentOf, importFiles, listed, open, phone, sayAndHear } from "../page.mjs";

const { story, close } = await open();
after(close);

const arabic = "مرحبا بالعالم، هذا نص طويل بعض الشيء";
const table = "| Configuration | Description of the value | Recommendation |\n|---|---|---|\n| temperature | controls randomness | leave it alone |\n| max_completion_tokens | limits the length of answers | increase |";

/** Words that are broken over two lines: the two ends of the word have different tops. */
const brokenWords = (page, selector) =>
  page.evaluate((selector) => {
    const broken = [];
    for (const box of document.querySelectorAll(selector)) {
      const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
        }
      }
    }
    return broken;
  }, selector);

for (const [name, options] of Object.entries({ desk, phone })) {
  story(`on a ${name}, words of tables and buttons are whole, and a word that is wider than the page wraps`, options, async (page) => {
    const wide = "w".repeat(300);
    await importFiles(page, [documentOf("Words", ["show a table", `${table}\n\n${wide}`])]);
    await page.locator(".markdown table").waitFor();
    assert.deepEqual(await brokenWords(page, ".markdown td, .markdown th, button"), []);
    assert.deepEqual(await brokenWords(page, ".markdown p"), [wide]);
    const overflow = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll(".scroller")].filter((box) => box.scrollWidth > box.clientWidth).length);
    assert.equal(overflow, 0);
    await page.screenshot({ path: `${artefacts}layout-words-${name}.png` });
  });
}

story("the button to the end is over the bottom of the conversation while one reads further up, and goes to the end", desk, async (page) => {
  await importFiles(page, [documentOf("Long", Array.from({ length: 80 }, (_, n) => `line ${n}`))]);
  await page.locator(".turn").getByText("line 79").waitFor();
  const toEnd = page.getByRole("button", { name: "To the end" });
  assert.equal(await toEnd.count(), 0);
  await page.locator(".scroller").hover();
  await page.mouse.wheel(0, -1500);
  await toEnd.waitFor();
  const [button, scroller] = await Promise.all([toEnd.boundingBox(), page.locator(".scroller").boundingBox()]);
  const fromBottom = scroller.y + scroller.height - (button.y + button.height);
  assert.ok(fromBottom >= 0 && fromBottom < 40, `the button is ${fromBottom} px above the bottom`);
  const off = button.x + button.width / 2 - (scroller.x + scroller.width / 2);
  assert.ok(Math.abs(off) < 4, `the button is ${off} px beside the middle`);
  assert.equal(Math.round(button.width), Math.round(button.height), "it is round");
  const before = await page.locator(".scroller").evaluate((box) => box.scrollTop);
  await page.screenshot({ path: `${artefacts}layout-to-end.png` });
  await toEnd.click();
  await toEnd.waitFor({ state: "detached" });
  assert.ok((await page.locator(".scroller").evaluate((box) => box.scrollTop)) > before);
});

story("right-to-left text runs from the right in messages, lists, tables, titles and the composer, and code does not", desk, async (page) => {
  const text = `${arabic}\n\n- ${arabic}\n- \`code()\` ${arabic}\n\n1. ${arabic}\n\n> ${arabic}\n\n| اسم | قيمة |\n|---|---|\n| ${arabic} | 1 |\n\n\`\`\`js\nconst a = 1;\n\`\`\`\n\nAnd in English again.`;
  await importFiles(page, [documentOf(arabic, [arabic, text])]);
  await page.locator(".markdown table").waitFor();
  const direction = (selector) => page.locator(selector).first().evaluate((node) => getComputedStyle(node).direction);
  for (const selector of [".question p", ".markdown > p", ".markdown ul", ".markdown ul li", ".markdown ol", ".markdown blockquote", ".markdown table", ".markdown td", ".bar h2", ".sessions .title"])
    assert.equal(await direction(selector), "rtl", selector);
  for (const selector of [".markdown .code pre", ".markdown li code", ".markdown > p:last-child"]) assert.equal(await direction(selector), "ltr", selector);
  // The text itself is at the right, and so are the markers of lists and the line of a quote.
  const gaps = await page.evaluate(() => {
    const gapOf = (selector) => {
      const node = document.querySelector(selector);
      const range = document.createRange();
      range.selectNodeContents(document.createTreeWalker(node, NodeFilter.SHOW_TEXT).nextNode());
      const [box, words] = [node.parentElement.closest(".question, .answer").getBoundingClientRect(), range.getBoundingClientRect()];
      return [selector, Math.round(words.left - box.left), Math.round(box.right - words.right)];
    };
    return [".question p", ".markdown > p", ".markdown ul li", ".markdown blockquote"].map(gapOf);
  });
  for (const [selector, left, right] of gaps) assert.ok(left > right, `${selector}: ${left} px at the left, ${right} px at the right`);
  const [first, last] = await page.locator(".markdown thead th").evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().left));
  assert.ok(first > last, "the first column is at the right");
  await page.screenshot({ path: `${artefacts}layout-rtl.png` });
  await page.getByRole("textbox", { name: "Message" }).fill(arabic);
  assert.equal(await direction(".composer textarea"), "rtl");
  await page.getByRole("textbox", { name: "Message" }).fill("hello");
  assert.equal(await direction(".composer textarea"), "ltr");
  await sayAndHear(page, "hello");
  assert.equal(await direction(".turn:last-child .question p"), "ltr");
  await listed(page, "مرحبا").waitFor();
});
