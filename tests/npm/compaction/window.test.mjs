// Conversations that are longer than the model's context window, in the packed package.
import { test } from "node:test";
import { overflowStories } from "../support/overflow.mjs";
import { story, tell } from "../support/project.mjs";
import { checkConversation, longConversation } from "./window.mjs";

for (const [store, turns] of [["memory", 500], ["files", 100]]) {
  test(`${turns} turns on ${store} stay within a window of 16,000 tokens, with nothing lost`, async () => {
    const seen = await tell(longConversation, { turns, store, transcript: "lockgate/transcript", patienceMs: 120_000 });
    checkConversation(seen, { turns });
  });
}

story(
  "undoCompaction restores the view byte for byte",
  async ({ createAgent, scriptedModel, echo, memoryStore, watched, assert }) => {
    const heads = [];
    const commit = (batch, next) => {
      for (const { key, value } of batch.put) if (key.endsWith("/head")) heads.push(JSON.parse(new TextDecoder().decode(value)));
      return next();
    };
    const { store } = watched({ commit }, memoryStore());
    const summariser = scriptedModel(["the gist"]);
    const agent = await createAgent({ name: "helper", model: echo(), store, compaction: { keepMessages: 2, triggerMessages: 0, model: summariser } });
    const slot = { sessionId: "s" };
    for (let n = 0; n < 4; n++) await agent.call(`question ${n} ${"and so on ".repeat(20)}`, slot);
    const before = await agent.getAgentState(slot);
    const { view } = heads.at(-1);
    const report = await agent.compact(slot);
    assert.deepEqual([report.messagesBefore, report.messagesAfter, report.summary], [8, 3, "the gist"]);
    assert.ok(report.tokensAfter < report.tokensBefore);
    const compacted = await agent.getAgentState(slot);
    assert.deepEqual([compacted.context.length, compacted.summary], [3, "the gist"]);
    assert.deepEqual(compacted.context.slice(1), before.context.slice(-2));
    const inspected = await agent.inspect(slot);
    const [window, parts] = [inspected.window, inspected.parts.filter(({ kind }) => kind !== "tools")];
    assert.deepEqual(parts.map(({ kind }) => kind), ["summary", "message", "message"]);
    assert.deepEqual(parts[0].replaces, { first: before.context[0].id, last: before.context[5].id, messages: 6 });
    assert.equal(window, null);
    await agent.undoCompaction(slot);
    const after = await agent.getAgentState(slot);
    assert.equal(JSON.stringify(after.context), JSON.stringify(before.context));
    assert.equal(JSON.stringify(heads.at(-1).view), JSON.stringify(view));
    assert.equal(after.summary, "");
    assert.deepEqual(await agent.history(slot), before.context);
    summariser.finished();
  },
);

story(
  "after a summary a JavaScript model gets the shortened conversation, and events report the summary",
  async ({ createAgent, customModel, memoryStore, readAll, textOf, assert }) => {
    const shown = [];
    const model = customModel({
      id: "story",
      async *generate({ system, messages }) {
        if (system.startsWith("You condense")) return yield { type: "text", text: "the gist" };
        shown.push(messages.map(({ role, content }) => `${role}: ${textOf({ content }).slice(0, 12)}`));
        yield { type: "text", text: "yes" };
      },
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), compaction: { triggerMessages: 6, keepMessages: 2 } });
    const slot = { sessionId: "s" };
    for (let n = 0; n < 3; n++) await agent.call(`question ${n} ${"and so on ".repeat(20)}`, slot);
    const events = await readAll(agent.stream("question 3", slot));
    const told = events.filter(({ type }) => type.startsWith("compaction"));
    assert.deepEqual(told.map(({ type }) => type), ["compaction-start", "compaction-end"]);
    assert.equal(told[0].messages, 7);
    assert.equal(told[1].report.summary, "the gist");
    assert.deepEqual(shown.at(-1), ["user: [The earlier", "assistant: yes", "user: question 3"]);
    await agent.call("question 4", slot);
    assert.deepEqual(shown.at(-1).slice(0, 2), ["user: [The earlier", "assistant: yes"]);
    assert.equal(shown.at(-1).length, 5);
    assert.equal((await agent.history(slot)).length, 10);
  },
);

overflowStories(10);

story(
  "invalid options of compaction, eviction and counting are refused with a correction",
  async ({ createAgent, echo, refusal, memoryStore, assert }) => {
    const wrong = [
      [{ compaction: { triggerMesages: 3 } }, /triggerMesages/],
      [{ compaction: { prompt: "summarise" } }, /\{messages\}/],
      [{ compaction: { model: {} } }, /compaction\.model/],
      [{ compaction: "yes" }, /compaction is a string/],
      [{ toolResultEviction: { maxChars: "many" } }, /maxChars/],
      [{ tokenCounter: 4 }, /tokenCounter/],
    ];
    for (const [options, message] of wrong) {
      const error = await refusal(() => createAgent({ name: "helper", model: echo(), store: memoryStore(), ...options }));
      assert.equal(error.code, "OPTIONS");
      assert.match(error.message, message);
    }
    let counted = 0;
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore(), compaction: true, tokenCounter: (text) => ((counted += 1), text.length) });
    await agent.call("hello", { sessionId: "s" });
    assert.ok(counted > 0);
    const said = (await agent.inspect({ sessionId: "s" })).parts.filter(({ kind }) => kind === "message");
    assert.ok(said.length === 2 && said.every(({ tokens, text }) => tokens >= text.length));
  },
);
