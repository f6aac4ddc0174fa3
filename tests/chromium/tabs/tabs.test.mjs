// Tabs of one origin over one IndexedDB: they wait for each other, get each other's events, and lose nothing after any failure.
import assert from "node:assert/strict";
import { devtools, story, within } from "../support/browser.mjs";

/** Makes an agent in a page that repeats each question; `window.agent`. */
const begin = (page, options = {}) =>
  within(page, async ({ createAgent, echo, slowEcho }, { delayMs = 0, ...rest }) => {
    const model = delayMs > 0 ? slowEcho(delayMs) : echo();
    window.agent = await createAgent({ name: "helper", model, ...rest });
  }, options);

const history = (page) =>
  within(page, async ({ textOf }) => {
    const messages = await window.agent.history({ sessionId: "s" }, { limit: 5_000 });
    return messages.map((message) => `${message.role}: ${textOf(message)}`);
  });

/** Asks `n` questions one after the other. Returns the answered ones. */
const askMany = (page, tab, n) =>
  within(page, async (_, { tab, n }) => {
    window.answered = [];
    window.refused = [];
    for (let question = 0; question < n; question++) {
      const text = `tab ${tab} question ${question}`;
      await window.agent.call(text, { sessionId: "s" }).then(
        () => window.answered.push(text),
        ({ code }) => window.refused.push(code),
      );
    }
    return window.answered;
  }, { tab, n });

/** Checks that the session consists of complete turns, and of turns that a crash has cut off. Returns its questions. */
function wholeTurns(lines) {
  const questions = [];
  const left = [...lines];
  while (left.length > 0) {
    const question = left.shift();
    assert.match(question, /^user: tab/, `a turn begins with a question: ${lines}`);
    const text = question.slice("user: ".length);
    questions.push(text);
    const whole = `assistant: you said ${text}`;
    if (left[0] === whole) left.shift();
    else {
      // A checkpoint may have stored the beginning of the answer.
      if (left[0]?.startsWith("assistant: ")) assert.ok(whole.startsWith(left.shift()), `after ${question}: ${lines}`);
      assert.match(left.shift() ?? "", /^user: .*cut off/, `after ${question}: ${lines}`);
    }
  }
  return questions;
}

story("G-07: eight tabs with fifty calls each on one session lose nothing and keep their order", async ({ page, open }) => {
  const pages = [page, ...(await Promise.all(Array.from({ length: 7 }, open)))];
  await Promise.all(pages.map((each) => begin(each)));
  await Promise.all(pages.map((each, tab) => askMany(each, tab, 50)));
  const questions = wholeTurns(await history(page));
  assert.equal(questions.length, 400);
  for (let tab = 0; tab < 8; tab++) {
    const own = questions.filter((text) => text.startsWith(`tab ${tab} `));
    assert.deepEqual(own, Array.from({ length: 50 }, (_, n) => `tab ${tab} question ${n}`));
  }
});

story("G-10, B-17: tabs that crash or close during a call lose no acknowledged turn", async ({ page, open }) => {
  await begin(page);
  const acknowledged = [];
  for (let round = 0; round < 6; round++) {
    const other = await open();
    await begin(other, { delayMs: 5 });
    await other.exposeFunction("acknowledge", (text) => acknowledged.push(text));
    const saidEnough = new Promise((resolve) => other.exposeFunction("enough", resolve));
    const talking = within(other, async (_, round) => {
      for (let question = 0; ; question++) {
        const text = `tab ${round} question ${question}`;
        await window.agent.call(text, { sessionId: "s" });
        await window.acknowledge(text);
        if (question === 3) window.enough();
      }
    }, round).catch(() => {});
    const mine = askMany(page, `main${round}`, 10);
    await saidEnough;
    if (round % 2 === 0) await other.close();
    else {
      const crashed = other.waitForEvent("crash");
      (await devtools(other)).send("Page.crash").catch(() => {});
      await crashed;
    }
    await talking;
    acknowledged.push(...(await mine));
  }
  // The next call logs the last question that a crash has cut off.
  acknowledged.push(...(await askMany(page, "last", 1)));
  assert.equal(acknowledged.filter((text) => text.startsWith("tab main")).length, 60);
  const stored = wholeTurns(await history(page));
  for (const text of acknowledged) assert.equal(stored.filter((each) => each === text).length, 1, text);
});

story("subscribe and attach show the calls of another tab as they happen, and interrupt reaches them", async ({ page, open }) => {
  const other = await open();
  await begin(page);
  await within(page, async () => {
    window.seen = [];
    window.agent.subscribe({ sessionId: "s" }, (event) => window.seen.push(event));
  });
  await begin(other, { delayMs: 15 });
  await within(other, async () => {
    window.call = window.agent.call("tell me a story of many many words", { sessionId: "s" });
  });
  await page.waitForFunction("window.seen.some(({ type }) => type === 'text-delta')");
  assert.equal((await page.evaluate("window.agent.listSessions(null)"))[0].running, true);
  const followed = await within(page, async () => {
    const call = await window.agent.attach({ sessionId: "s" });
    const events = [];
    for await (const event of call) {
      events.push(event);
      if (event.type === "text-delta" && !window.told) window.told = window.agent.interrupt({ sessionId: "s" }, "enough");
    }
    return { events, told: await window.told, reason: (await call.result).reason };
  });
  assert.equal(followed.told, true, "the interrupt reached the call");
  assert.equal(followed.reason, "interrupted");
  assert.deepEqual(followed.events.map(({ seq }) => seq), followed.events.map((_, index) => index));
  assert.equal(followed.events.at(-1).type, "call-end");
  await page.waitForFunction("window.seen.some(({ type }) => type === 'session-changed')");
  const seen = await page.evaluate("window.seen.filter(({ callId }) => callId).map(({ seq }) => seq)");
  assert.deepEqual(seen, seen.map((_, index) => index), "not every event once, from the first on");
  assert.deepEqual((await history(page)).at(-1), "user: enough");
  assert.equal(await page.evaluate("window.agent.attach({ sessionId: 's' })"), null);
  assert.equal(await page.evaluate("window.agent.interrupt({ sessionId: 's' })"), false);
});

story("a reader of a call in a closed tab gets an error", async ({ page, open }) => {
  const other = await open();
  await Promise.all([begin(page), begin(other, { delayMs: 200 })]);
  await other.evaluate("void (window.call = window.agent.call('tell me', { sessionId: 's' }))");
  await page.waitForFunction("window.agent.attach({ sessionId: 's' }).then((call) => (window.followed = call) !== null)");
  await other.close();
  const code = await page.evaluate("window.followed.result.catch(({ code }) => code)");
  assert.equal(code, "SUPERSEDED");
});

story("B-18: messages between tabs that are malformed, foreign or from another version change nothing", async ({ page, open }) => {
  const other = await open();
  await begin(page);
  await page.evaluate("window.seen = [], void window.agent.subscribe('everyone', ({ type }) => window.seen.push(type))");
  await within(other, async () => {
    const channel = new BroadcastChannel('lockgate.tabs.1/IndexedDB "lockgate"/helper');
    const pings = new BroadcastChannel("lockgate.pings.1");
    const slot = { sessionId: "s", userId: null };
    const odd = [null, 1, "x", [], {}, { type: "events" }, { type: "events", from: "x", slot, events: "no" }, { type: "listens", from: "x", of: 3 }, { type: "listens", from: "x", of: [null] },
      { type: "interrupt", from: "x", id: {}, slot: null, says: 4 }, { type: "changed", from: "x", slot: null }, { type: "new in version 9", from: "x" }, new Uint8Array(9)];
    for (const message of odd) {
      channel.postMessage(message);
      pings.postMessage(message);
    }
  });
  const answered = await askMany(page, "main", 3);
  assert.equal(answered.length, 3);
  assert.equal(wholeTurns(await history(page)).length, 3);
  assert.ok((await page.evaluate("window.seen")).includes("call-end"));
});

story("G-11: without Web Locks tabs still wait for each other, through the store", async ({ page, open }) => {
  assert.equal(await page.evaluate("navigator.locks"), undefined);
  const other = await open();
  await Promise.all([begin(page), begin(other)]);
  await Promise.all([askMany(page, 0, 25), askMany(other, 1, 25)]);
  const questions = wholeTurns(await history(page));
  assert.equal(questions.length, 50);
  for (const tab of [0, 1]) {
    const own = questions.filter((text) => text.startsWith(`tab ${tab} `));
    assert.deepEqual(own, Array.from({ length: 25 }, (_, n) => `tab ${tab} question ${n}`));
  }
}, { origin: "insecure" });

story("G-12: every id gives a lock name that the browser accepts", async ({ page }) => {
  await begin(page);
  const replies = await within(page, async () => {
    const ids = ["-dash", "ä".repeat(100), "x".repeat(256), "../..", "*"];
    const replies = await Promise.all(ids.map((sessionId) => window.agent.call("hello", { sessionId, userId: sessionId })));
    return replies.map(({ reason }) => reason);
  });
  assert.deepEqual(replies, Array(5).fill("stop"));
});

story("G-14: an idle page holds no lock and waits for no lock", async ({ page }) => {
  await begin(page);
  await askMany(page, 0, 2);
  const { held, pending } = await page.evaluate("navigator.locks.query()");
  assert.deepEqual([held, pending], [[], []]);
});
