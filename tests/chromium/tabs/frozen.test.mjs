// Tabs that are frozen, crashed and closed during a call: acknowledged turns stay, and the other tabs work on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { origins, program } from "../support/browser.mjs";
import { launch } from "../support/pipe.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const open = async () => {
  const page = await browser.open(`${origins().secure}/`);
  page.within = (work, given) => page.evaluate(program(work, given));
  return page;
};

/** Starts an answer in a page that stops in the middle; `window.call` settles like the call. */
const talk = (page, sessionId) =>
  page.within(async ({ createAgent, customModel }, sessionId) => {
    let isTalking;
    const talking = new Promise((resolve) => (isTalking = resolve));
    const model = customModel({
      id: "slow",
      async *generate() {
        yield { type: "text", text: "half an answer" };
        isTalking();
        await new Promise((resolve) => (window.goOn = resolve));
        yield { type: "text", text: ", and the other half" };
      },
    });
    window.agent = await createAgent({ name: "helper", model });
    const plain = ({ code, partial }) => ({ code, partial });
    window.call = window.agent.call("first", { sessionId }).then(({ reason }) => ({ reason }), plain);
    await talking;
  }, sessionId);

/** Asks the agent of a page. Returns the types of the events of the call. */
const ask = (page, text, sessionId) =>
  page.within(async ({ createAgent, echo, textOf }, { text, sessionId }) => {
    window.agent ??= await createAgent({ name: "helper", model: echo() });
    await window.agent.call(text, { sessionId });
    const messages = await window.agent.history({ sessionId });
    return { texts: messages.map((message) => textOf(message)), info: await window.agent.session({ sessionId }) };
  }, { text, sessionId });

test("G-08, G-09: the lock of a frozen tab is taken over, and its answer is kept as a side branch", { timeout: 60_000 }, async () => {
  const [frozen, free] = [await open(), await open()];
  await talk(frozen, "s1");
  await frozen.freeze();
  const { texts } = await ask(free, "second", "s1");
  assert.deepEqual([texts[0], texts.length], ["first", 4]);
  assert.match(texts[1], /cut off/);
  assert.deepEqual(texts.slice(2), ["second", "you said second"]);
  await frozen.thaw();
  const ended = await frozen.evaluate("window.goOn(), window.call");
  assert.equal(ended.code, "SUPERSEDED");
  assert.match(JSON.stringify(ended.partial), /half an answer/);
  const { info, texts: later } = await ask(free, "third", "s1");
  assert.deepEqual([info.branches, later.at(-1)], [1, "you said third"]);
});

/** Counts the pings of a waiting tab until the holder has answered `n` of them. A claim is an attempt to take the lock. */
const heardOfHolder = (_, n) =>
  new Promise((resolve) => {
    const heard = { pongs: 0, claims: 0 };
    const channel = new BroadcastChannel("lockgate.pings.1");
    channel.onmessage = ({ data }) => {
      if ("pong" in data) heard.pongs++;
      if ("claim" in data) heard.claims++;
      if (heard.pongs < n && heard.claims === 0) return;
      channel.close();
      resolve(heard);
    };
  });

test("a background tab that responds keeps its lock, even during a long call", { timeout: 60_000 }, async () => {
  const [slow, free] = [await open(), await open()];
  await talk(slow, "s2");
  // The clock of the waiting tab runs ten times as fast, so that a holder is silent for too long between two questions.
  await free.evaluate("{ const real = Date.now, start = real(); Date.now = () => start + (real() - start) * 10; } 0");
  const answered = ask(free, "second", "s2");
  assert.deepEqual(await free.evaluate(program(heardOfHolder, 4)), { pongs: 4, claims: 0 });
  assert.deepEqual(await slow.evaluate("window.goOn(), window.call"), { reason: "stop" });
  assert.deepEqual((await answered).texts, ["first", "half an answer, and the other half", "second", "you said second"]);
});

test("B-12: a frozen tab that holds a transaction blocks others no longer than the store's deadline", { timeout: 60_000 }, async () => {
  const [frozen, free] = [await open(), await open()];
  await ask(free, "hello", "s3");
  await frozen.evaluate(`new Promise((resolve) => {
    const opening = indexedDB.open("lockgate");
    opening.onsuccess = () => {
      const records = opening.result.transaction("records", "readwrite").objectStore("records");
      const keep = () => (records.get("x").onsuccess = keep);
      keep();
      resolve();
    };
  })`);
  await frozen.freeze();
  const code = await free.within(async ({ createAgent, echo, indexedDbStore }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore(), timeouts: { store: 2_000 } });
    return agent.call("blocked", { sessionId: "s3" }).catch(({ code }) => code);
  });
  assert.ok(["STORE_BLOCKED", "STORE_TIMEOUT"].includes(code), String(code));
  await frozen.close();
  assert.equal((await ask(free, "again", "s3")).texts.at(-1), "you said again");
});

test("G-14: an idle page is restored from the back/forward cache and still works", { timeout: 60_000 }, async () => {
  const page = await open();
  await ask(page, "first", "s5");
  await page.evaluate("window.shown = new Promise((resolve) => addEventListener('pageshow', ({ persisted }) => resolve(persisted))), 0");
  await page.go(`${origins().secure}/?elsewhere`);
  await page.back();
  const reasons = "JSON.stringify(performance.getEntriesByType('navigation')[0].notRestoredReasons)";
  assert.equal(await page.evaluate(`window.shown ?? ${reasons}`), true);
  assert.deepEqual((await ask(page, "second", "s5")).texts, ["first", "you said first", "second", "you said second"]);
});

test("a tab that is frozen while it saves blocks no other tab, and finishes the save when it resumes", { timeout: 120_000 }, async () => {
  const [frozen, free] = [await open(), await open()];
  await frozen.within(async ({ createAgent, echo }) => {
    const agent = await createAgent({ name: "saver", model: echo() });
    window.answered = 0;
    const talk = async (sessionId) => {
      for (; !window.enough; window.answered++) await agent.call("hello", { sessionId });
    };
    // So many that a transaction is always running.
    window.talking = Promise.all(Array.from({ length: 20 }, (_, each) => talk(`s${each}`)));
  });
  const answers = (more) => frozen.evaluate(`new Promise((resolve) => {
    const enough = window.answered + ${more};
    const look = () => (window.answered >= enough ? resolve() : setTimeout(look, 5));
    look();
  })`);
  await answers(1);
  for (let round = 0; round < 5; round++) {
    await frozen.freeze();
    const { texts } = await ask(free, `round ${round}`, "s4");
    assert.equal(texts.at(-1), `you said round ${round}`);
    await frozen.thaw();
    await answers(1);
  }
  await frozen.evaluate("(window.enough = true), window.talking.then(() => {})");
});

test("eight tabs that are frozen, crashed and closed at random lose no acknowledged turn", { timeout: 240_000 }, async () => {
  const begin = (page, tab) =>
    page.within(async ({ createAgent, echo }, tab) => {
      window.acknowledged = [];
      window.codes = new Set();
      const agent = await createAgent({ name: "chaos", model: echo() });
      const talk = async () => {
        for (let question = 0; question < 50; question++) {
          const text = `tab ${tab} question ${question}`;
          const callId = `call ${tab}.${question}`;
          const asked = () =>
            agent.call(text, { sessionId: "s", callId }).then(
              () => void window.acknowledged.push(text),
              (error) => error,
            );
          let error = await asked();
          // Like an application that retries a retryable error: with the same callId no message is stored twice.
          while (error?.retryable) error = await asked();
          if (error !== undefined) window.codes.add(error.code);
          localStorage.setItem(`acknowledged ${tab}`, JSON.stringify(window.acknowledged));
        }
      };
      window.talking = talk();
    }, tab);
  const n = 8;
  const pages = [];
  for (let tab = 0; tab < n; tab++) {
    pages.push(await open());
    await begin(pages[tab], tab);
  }
  const [frozen, crashed, closed] = [pages.slice(0, 2), pages.slice(2, 4), pages.slice(4, 5)];
  const others = pages.slice(5);
  const some = (at) => others[0].evaluate(`new Promise((resolve) => {
    const look = () => (window.acknowledged.length >= ${at} ? resolve() : setTimeout(look, 5));
    look();
  })`);
  await some(3);
  await frozen[0].freeze();
  crashed[0].crash();
  await some(8);
  await closed[0].close();
  await frozen[1].freeze();
  await some(14);
  crashed[1].crash();
  await frozen[0].thaw();
  for (const page of others) await page.evaluate("window.talking.then(() => {})");
  for (const page of frozen) {
    await page.thaw();
    await page.evaluate("window.talking.then(() => {})");
  }
  const codes = async (of) => (await Promise.all(of.map((page) => page.evaluate("[...window.codes]")))).flat();
  assert.deepEqual(await codes(others), [], "only frozen tabs lose their lock");
  assert.deepEqual((await codes(frozen)).filter((code) => code !== "SUPERSEDED"), []);
  const { stored, acknowledged } = await others[0].within(async ({ createAgent, echo, textOf }, n) => {
    const agent = await createAgent({ name: "chaos", model: echo() });
    const messages = await agent.history({ sessionId: "s" }, { limit: 10_000 });
    const acknowledged = Array.from({ length: n }, (_, tab) => JSON.parse(localStorage.getItem(`acknowledged ${tab}`) ?? "[]"));
    return { stored: messages.map((message) => textOf(message)), acknowledged };
  }, n);
  for (const [tab, own] of acknowledged.entries()) {
    const found = stored.filter((text) => own.includes(text));
    assert.deepEqual(found, own, `tab ${tab}: not each text once and in order`);
    for (const text of own) assert.equal(stored[stored.indexOf(text) + 1], `you said ${text}`);
  }
  assert.ok(acknowledged.flat().length > 150, `${acknowledged.flat().length} were acknowledged`);
});
