// A tab that crashes or goes away during a streamed answer: the question and the answer up to the last checkpoint stay.
import assert from "node:assert/strict";
import { devtools, story, within } from "../support/browser.mjs";

const KILLS = 20;

/** Begins an endless answer "w0 w1 w2 …", and logs the last word that readers see, whenever it changes. */
const talk = async ({ createAgent, customModel, indexedDbStore, textOf }, { sessionId, checkpointMs }) => {
  const model = customModel({
    id: "endless",
    async *generate() {
      for (let n = 0; ; n++) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        yield { type: "text", text: `w${n} ` };
      }
    },
  });
  const slot = { sessionId };
  const agent = await createAgent({ name: "helper", model, store: indexedDbStore("app"), checkpointMs });
  const call = agent.stream("go", slot);
  const follow = async () => {
    for await (const event of call) if (event.type === "text-delta") console.log("streamed");
  };
  const look = async () => {
    for (let last = ""; ; ) {
      const answer = (await agent.history(slot, { limit: 1 })).at(-1);
      const word = answer?.role === "assistant" ? textOf(answer).trim().split(" ").at(-1) : "";
      if (word !== last) console.log(`stored ${(last = word)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  void follow();
  void look();
};

/** Reads sessions. */
const read = async ({ createAgent, demoModel, indexedDbStore, textOf }, sessionIds) => {
  const agent = await createAgent({ name: "helper", model: demoModel(), store: indexedDbStore("app") });
  const histories = [];
  for (const sessionId of sessionIds) {
    const history = await agent.history({ sessionId });
    histories.push(history.map((message) => ({ role: message.role, turn: message.turn, text: textOf(message) })));
  }
  await agent.close();
  return histories;
};

const wordsUpTo = (n) => Array.from({ length: n + 1 }, (_, each) => `w${each} `).join("");

/** The lines that a page logs. `until` resolves when one of them passes. */
function logs(page) {
  const lines = [];
  let look = () => {};
  page.on("console", (message) => {
    lines.push(message.text());
    look();
  });
  const until = (passes) => new Promise((resolve) => (look = () => lines.some(passes) && resolve()));
  return { lines, until };
}

/** Checks that a session has the question, and the answer at least up to this word, without a gap. */
function checkAnswer([question, answer, ...more], last) {
  assert.deepEqual([question.text, question.turn, answer?.role, more], ["go", "interrupted", "assistant", []]);
  const n = answer.text.trim().split(" ").length - 1;
  assert.equal(answer.text, wordsUpTo(n), "a part is missing or doubled");
  assert.ok(n >= last, `word ${last} was stored, and ${n} is the last`);
}

story(`after ${KILLS} crashes of a tab at random moments of streamed answers, each question is there with its answer up to the last checkpoint`, async ({ open }) => {
  const stored = [];
  for (let nth = 0; nth < KILLS; nth++) {
    const page = await open();
    const { lines, until } = logs(page);
    const seen = until((line) => /^stored w/.test(line));
    await within(page, talk, { sessionId: `s${nth}`, checkpointMs: 20 });
    await seen;
    await new Promise((resolve) => setTimeout(resolve, 100 * Math.random()));
    const crashed = page.waitForEvent("crash");
    void devtools(page).then((session) => session.send("Page.crash")).catch(() => {});
    await crashed;
    await page.close();
    stored.push(Number(lines.findLast((line) => /^stored w/.test(line)).slice("stored w".length)));
  }
  const histories = await within(await open(), read, stored.map((_, nth) => `s${nth}`));
  histories.forEach((history, nth) => checkAnswer(history, stored[nth]));
});

/** A page with an answer whose next checkpoint is far away. */
async function streaming(page) {
  const { until } = logs(page);
  const begun = until((line) => line === "streamed");
  await within(page, talk, { sessionId: "s", checkpointMs: 600_000 });
  await begun;
}

/** Waits until readers see a part of the answer. */
const seen = async ({ createAgent, demoModel, indexedDbStore }) => {
  const agent = await createAgent({ name: "helper", model: demoModel(), store: indexedDbStore("app") });
  while ((await agent.history({ sessionId: "s" })).length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
};

story("a page that is reloaded stores what is new in its answer while the browser asks for the page", async ({ open, page }) => {
  await streaming(page);
  const reader = await open();
  // The server answers when the part of the answer is stored.
  await page.route("**/", async (route) => {
    await within(reader, seen);
    await route.continue();
  });
  await page.reload();
  const [history] = await within(reader, read, ["s"]);
  checkAnswer(history, 0);
});

for (const event of ["pagehide", "visibilitychange"]) {
  story(`the write of a checkpoint begins within the event ${event}`, async ({ page }) => {
    await streaming(page);
    const began = await page.evaluate(async (event) => {
      const keys = [];
      const { put } = IDBObjectStore.prototype;
      IDBObjectStore.prototype.put = function (value, key) {
        keys.push(key);
        return put.call(this, value, key);
      };
      Object.defineProperty(document, "visibilityState", { value: "hidden" });
      (event === "pagehide" ? window : document).dispatchEvent(new Event(event, { bubbles: true }));
      // Only promises are awaited here: no task of the page runs in between.
      for (let n = 0; n < 100; n++) await null;
      return keys.some((key) => key.includes("/partial/"));
    }, event);
    assert.equal(began, true);
  });
}

story("a page without running calls has no listener that could keep it out of the browser's cache", async ({ page }) => {
  const added = await within(page, async ({ createAgent, echo, indexedDbStore }) => {
    const open = new Set();
    const { addEventListener: add, removeEventListener: remove } = window;
    window.addEventListener = (type, ...rest) => (open.add(type), add.call(window, type, ...rest));
    window.removeEventListener = (type, ...rest) => (open.delete(type), remove.call(window, type, ...rest));
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
    const call = agent.stream("hi", { sessionId: "s" });
    const during = open.has("beforeunload");
    await call.result;
    return { during, after: open.has("beforeunload") };
  });
  assert.deepEqual(added, { during: true, after: false });
});
