// What other tabs see of a call whose tab was closed, has crashed or is frozen.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { origins, program, story, within } from "../support/browser.mjs";
import { launch } from "../support/pipe.mjs";

const slot = { sessionId: "s", userId: "ada" };

/** Follows the sessions of a user; `window.heard` has the events. */
const follow = async ({ createAgent, echo }) => {
  window.agent = await createAgent({ name: "helper", model: echo() });
  window.heard = [];
  window.agent.subscribe({ userId: "ada" }, (event) => {
    window.heard.push(event);
    window.look?.();
  });
};

/** Starts a call that stops in the middle of its answer. */
const talk = async ({ createAgent, customModel }, slot) => {
  let isTalking;
  const talking = new Promise((resolve) => (isTalking = resolve));
  const model = customModel({
    id: "endless",
    async *generate() {
      yield { type: "text", text: "half an answer" };
      isTalking();
      await new Promise((resolve) => (window.goOn = resolve));
      yield { type: "text", text: ", and the other half" };
    },
  });
  window.agent = await createAgent({ name: "helper", model });
  window.call = window.agent.call("are you there?", slot).then(({ reason }) => reason, ({ code }) => code);
  await talking;
};

/** The session as a tab sees it: the question with the state of its turn, and the facts of the list. */
const seen = async ({ textOf }, slot) => {
  const [question] = await window.agent.history(slot);
  const [line] = await window.agent.listSessions("ada");
  const info = await window.agent.session(slot);
  const hits = await window.agent.search("there", { userId: "ada" });
  const facts = ({ running, interrupted, messages }) => ({ running, interrupted, messages });
  return { question: `${textOf(question)} [${question.turn}]`, line: facts(line), info: facts(info), hits: hits.length };
};

const heardHalf = "window.heard.some(({ type, delta }) => type === 'text-delta' && delta.includes('half'))";
const heardEnd = "window.heard.some(({ type }) => type === 'error') && window.heard.at(-1).type === 'session-changed'";
const ends = "window.heard.slice(-2).map(({ type, error, callId, info }) => ({ type, code: error?.code, isOfCall: callId !== undefined, interrupted: info?.interrupted, running: info?.running }))";
const lost = [
  { type: "error", code: "SUPERSEDED", isOfCall: true },
  { type: "session-changed", isOfCall: false, interrupted: true, running: false },
];

for (const how of ["closed", "crashed", "reloaded"]) {
  story(`when a tab is ${how} during a call, other tabs hear the end of the call and show its question as interrupted`, async ({ page, open }) => {
    await within(page, follow);
    const talker = await open();
    await within(talker, talk, slot);
    await page.waitForFunction(`${heardHalf} && window.heard.some(({ type }) => type === "session-changed")`);
    const began = await page.evaluate("window.heard.filter(({ type }) => type === 'session-changed').map(({ info }) => info.running)");
    assert.deepEqual(began, [true]);
    const running = { running: true, interrupted: false, messages: 1 };
    assert.deepEqual(await within(page, seen, slot), { question: "are you there? [open]", line: running, info: running, hits: 1 });
    const attached = within(page, async (_, slot) => {
      const call = await window.agent.attach(slot);
      window.isAttached = true;
      return call.result.catch(({ code }) => code);
    }, slot);
    await page.waitForFunction("window.isAttached");
    if (how === "closed") await talker.close();
    else if (how === "reloaded") await talker.reload();
    else {
      const crash = talker.waitForEvent("crash");
      (await talker.context().newCDPSession(talker)).send("Page.crash").catch(() => {});
      await crash;
    }
    await page.waitForFunction(heardEnd);
    assert.deepEqual(JSON.parse(JSON.stringify(await page.evaluate(ends))), lost);
    assert.equal(await attached, "SUPERSEDED");
    // A page that is closed or reloaded may have time to store what is new in its answer.
    const { messages } = await page.evaluate("window.agent.session({ sessionId: 's', userId: 'ada' })");
    assert.ok(messages === 1 || (messages === 2 && how !== "crashed"), `${messages} messages`);
    const gone = { running: false, interrupted: true, messages };
    assert.deepEqual(await within(page, seen, slot), { question: "are you there? [interrupted]", line: gone, info: gone, hits: 1 });
    const seqs = await page.evaluate("window.heard.filter(({ callId }) => callId !== undefined).map(({ seq }) => seq)");
    assert.deepEqual(seqs, seqs.map((_, index) => index));
  });
}

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const openPage = async () => {
  const page = await browser.open(`${origins().secure}/`);
  page.within = (work, given) => page.evaluate(program(work, given));
  return page;
};

test("a follower hears that a frozen tab does not respond, and that a slow one does", { timeout: 90_000 }, async () => {
  const [page, talker] = [await openPage(), await openPage()];
  await page.within(follow);
  await talker.within(talk, slot);
  const until = (condition) => page.evaluate(`new Promise((resolve) => {
    window.look = () => ${condition} && resolve(true);
    window.look();
  })`);
  await until(heardHalf);
  // The clock of the follower runs ten times as fast. The tab is silent, but answers its questions.
  const answered = page.evaluate(`new Promise((resolve) => {
    const channel = new BroadcastChannel("lockgate.pings.1");
    channel.onmessage = ({ data }) => "pong" in data && (channel.close(), resolve(data.pong));
  })`);
  await page.evaluate("{ const real = Date.now, start = real(); Date.now = () => start + (real() - start) * 10; } 0");
  assert.match(await answered, /^lockgate\.tab\.1\//);
  assert.equal(await page.evaluate("window.heard.some(({ type }) => type === 'error')"), false);
  await talker.freeze();
  await until("window.heard.some(({ type }) => type === 'error')");
  assert.equal(await page.evaluate("window.heard.find(({ type }) => type === 'error').error.code"), "SUPERSEDED");
  await talker.thaw();
  assert.equal(await talker.evaluate("window.goOn(), window.call"), "stop");
  await until("window.heard.at(-1).type === 'session-changed' && !window.heard.at(-1).info.running");
});
