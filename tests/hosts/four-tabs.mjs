// Four tabs of one browser that use the sessions of one localStorage at once, are reloaded and closed meanwhile.
import assert from "node:assert/strict";
import { story, within } from "./support/pages.mjs";

const N_TURNS = 12;

/** Begins calls in a tab, some on a session that all tabs share. Tells how each ended when it is asked. */
const begin = (page, tab, turns) =>
  within(page, async ({ createAgent, localStorageStore, slowEcho }, { tab, turns }) => {
    const agent = await createAgent({ name: "helper", model: slowEcho(2), store: localStorageStore("app"), checkpointMs: 1 });
    const plain = (error) => {
      const { name, code, message, hint, stack, cause } = error ?? {};
      return { name, code, message: String(message ?? error), hint, stack: String(stack), cause: cause === undefined ? undefined : plain(cause) };
    };
    globalThis.told = [];
    // Names this tab in the list of locks, so that a failure says which tab held what.
    void navigator.locks.request(`tab-${tab}`, () => new Promise(() => {}));
    const locks = async () => {
      const { held, pending } = await navigator.locks.query();
      const tabs = new Map(held.filter(({ name }) => name.startsWith("tab-")).map(({ name, clientId }) => [clientId, name]));
      const told = (list) => list.filter(({ name }) => !name.startsWith("tab-")).map(({ name, clientId }) => `${tabs.get(clientId) ?? clientId}: ${name}`);
      return { held: told(held), pending: told(pending) };
    };
    const call = async (n) => {
      const [text, sessionId] = [`${tab}.${n}`, n % 3 === 0 ? `own-${tab}` : "shared"];
      try {
        const reply = await agent.call(text, { sessionId, userId: "alice" });
        globalThis.told.push({ text, sessionId, reply: reply.text });
      } catch (error) {
        globalThis.told.push({ text, sessionId, error: plain(error), locks: await locks() });
      }
    };
    globalThis.ending = Promise.all(Array.from({ length: turns }, (_, n) => call(n)));
    globalThis.look = () => Promise.all([agent.history({ sessionId: "shared", userId: "alice" }), agent.listSessions("alice")]);
    void globalThis.look().catch((error) => globalThis.told.push({ error: plain(error) }));
  }, { tab, turns });

const told = (page) => page.evaluate(async () => {
  await globalThis.ending;
  return globalThis.told;
});

/** One round: four tabs, of which one is reloaded and one is closed in the middle. */
export function fourTabs(rounds, browsers) {
  story(`F-03: four tabs on localStorage, one reloaded and one closed, lose no turn and crash no engine in ${rounds} rounds`, async ({ open }) => {
    for (let round = 0; round < rounds; round++) {
      const pages = await Promise.all([0, 1, 2, 3].map(() => open()));
      await pages[0].evaluate(() => localStorage.clear());
      await Promise.all(pages.map((page, tab) => begin(page, tab, N_TURNS)));
      const some = (page) => page.evaluate(async () => {
        while (globalThis.told.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      });
      await some(pages[2]);
      await Promise.all([pages[2].reload(), some(pages[3]).then(() => pages[3].close())]);
      await begin(pages[2], 4, N_TURNS);
      const outcomes = (await Promise.all([pages[0], pages[1], pages[2]].map(told))).flat();
      const failed = outcomes.filter(({ error }) => error !== undefined);
      assert.equal(failed.length, 0, `round ${round}: ${failed.length} failures, such as ${JSON.stringify(failed[0], null, 1)}`);
      assert.equal(outcomes.length, 3 * N_TURNS);
      const texts = await within(pages[0], async ({ createAgent, localStorageStore, echo, texts }) => {
        const agent = await createAgent({ name: "helper", model: echo(), store: localStorageStore("app") });
        return texts(agent, { sessionId: "shared", userId: "alice" });
      });
      for (const { text, sessionId, reply } of outcomes) {
        assert.equal(reply, `you said ${text}`);
        if (sessionId === "shared") assert.equal(texts.filter((each) => each === text).length, 1, `round ${round}: ${text} in ${texts}`);
      }
      for (const page of pages) await page.close().catch(() => {});
    }
  }, { browsers, timeout: 60_000 + rounds * 30_000 });
}
