// A compacted session with branches is imported into IndexedDB in several transactions, and another tab reads it whole.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

const slot = { userId: "alice", sessionId: "s" };

const make = async ({ createAgent, customModel }) => {
  const model = customModel({ id: "brief", async *generate() { yield { type: "text", text: "well" }; } });
  window.agent = await createAgent({ name: "helper", model, compaction: { keepMessages: 2 } });
};

/** What readers see of the session. */
const seen = (page, sessionId) =>
  within(page, async (_, slot) => {
    const { agent } = window;
    const { summary, context } = await agent.getAgentState(slot);
    return { summary, context, history: await agent.history(slot), branches: (await agent.branches(slot)).length };
  }, { ...slot, sessionId });

story("a large compacted session moves through a document in a page, and another tab sees all of it", async ({ page, open }) => {
  await within(page, make);
  const { same, n } = await within(page, async (_, slot) => {
    const { agent } = window;
    for (let n = 0; n < 60; n++) await agent.append(slot, [{ role: "user", content: `note ${n} ${"words ".repeat(6_000)}` }, { role: "assistant", content: "noted" }]);
    await agent.call("question", slot);
    await agent.resend(slot).result;
    await agent.compact(slot);
    const document = await agent.exportSession(slot);
    const copy = { ...slot, sessionId: "copy" };
    const info = await agent.importSession(copy, document);
    // The state names the session; everything else is the same.
    const plain = (text) => ({ ...JSON.parse(text), state: undefined });
    return { same: JSON.stringify(plain(await agent.exportSession(copy))) === JSON.stringify(plain(document)), n: info.messages };
  }, slot);
  assert.deepEqual([same, n], [true, 122]);
  const other = await open();
  await within(other, make);
  const copy = await seen(other, "copy");
  assert.deepEqual(copy, await seen(page, "s"));
  assert.deepEqual([copy.summary, copy.branches, copy.history.length], ["well", 2, 122]);
  // The call has made a summary too, so there are two to undo.
  for (let n = 0; n < 2; n++) await other.evaluate("window.agent.undoCompaction({ userId: 'alice', sessionId: 'copy' })");
  const undone = await seen(page, "copy");
  assert.deepEqual([undone.summary, undone.context.length], ["", 122]);
});
