// The scenario in every browser: in a page on IndexedDB and on localStorage, in a web worker, and in two tabs.
import assert from "node:assert/strict";
import fs from "node:fs";
import { inRoot } from "../../src/build/run.mjs";
import { record } from "../packaging/kit.mjs";
import { story, within } from "./support/pages.mjs";

const scenario = { headers: { "content-type": "text/javascript" }, body: fs.readFileSync(inRoot("tests/hosts/scenario.mjs"), "utf8") };

/** Runs a part of the scenario in a page. */
const part = (page, phase, kind) =>
  within(page, async (lockgate, { phase, kind }) => {
    const scenario = await import("/scenario.mjs");
    const store = kind === "localStorage" ? () => lockgate.localStorageStore("scenario") : undefined;
    return scenario[phase](lockgate, { storage: new RegExp(kind), store });
  }, { phase, kind });

/** The same in a web worker that ends with the page. */
const partInWorker = (page, phase) =>
  page.evaluate(async (phase) => {
    const worker = new Worker(`/worker.mjs?${phase}`, { type: "module" });
    try {
      return await new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
      });
    } finally {
      worker.terminate();
    }
  }, phase);

const worker = {
  headers: scenario.headers,
  body: `
    import * as lockgate from "/dist/entry/browser.js";
    import * as scenario from "/scenario.mjs";
    postMessage(await scenario[location.search.slice(1)](lockgate, { storage: /IndexedDB/ }));`,
};

for (const kind of ["IndexedDB", "localStorage"]) {
  story(`the scenario in a page, on ${kind}, with a reload`, async ({ open, pages, browser }) => {
    pages["/scenario.mjs"] = scenario;
    const page = await open();
    const steps = await part(page, "before", kind);
    await page.reload();
    check(browser, `page, ${kind}`, [...steps, ...(await part(page, "after", kind))]);
  });
}

story("the scenario in a web worker that is ended and started again", async ({ open, pages, browser }) => {
  Object.assign(pages, { "/scenario.mjs": scenario, "/worker.mjs": worker });
  const page = await open();
  const steps = await partInWorker(page, "before");
  check(browser, "web worker", [...steps, ...(await partInWorker(page, "after"))]);
});

story("two tabs take turns in one session, and each hears the other", async ({ open, browser }) => {
  const tabs = [await open(), await open()];
  const asked = await Promise.all(tabs.map((tab, n) => within(tab, async ({ createAgent, echo }, n) => {
    const agent = await createAgent({ name: "tabs", model: echo() });
    const slot = { sessionId: "shared", userId: "ada" };
    const foreign = new Promise((resolve) => {
      agent.subscribe(slot, (event) => event.type === "call-end" && event.reply.text.includes(`tab ${1 - n}`) && resolve(true));
    });
    for (let question = 0; question < 10; question += 1) await agent.call(`tab ${n} question ${question}`, slot);
    return foreign;
  }, n)));
  assert.deepEqual(asked, [true, true]);
  const texts = await within(tabs[0], async ({ createAgent, echo, textOf }) => {
    const agent = await createAgent({ name: "tabs", model: echo() });
    return (await agent.history({ sessionId: "shared", userId: "ada" })).map(textOf);
  });
  assert.equal(texts.length, 40);
  for (let at = 0; at < texts.length; at += 2) assert.equal(texts[at + 1], `you said ${texts[at]}`);
  record(browser.version, "two tabs", "40 messages");
});

function check(browser, how, steps) {
  assert.deepEqual(steps.filter(({ error }) => error !== null), []);
  record(browser.version, how, `${steps.length} steps`);
}
