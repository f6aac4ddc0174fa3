// A conversation with a real language model whose window is small, in a short and a long version.
import assert from "node:assert/strict";

const birds = ["albatross", "bittern", "cormorant", "dunlin", "egret", "fulmar", "gannet", "heron", "ibis", "jackdaw"];

/**
 * Holds a conversation of this many turns, and returns what was seen. The source is written into a program of another process, so
 * it can use only its parameters. Every summary fails if `isWithoutSummaries`.
 */
export async function realConversation(
  { createAgent, openai, memoryStore, scriptedModel, modelOf, readAll, textOf },
  { url, turns, birds, words, isWithoutSummaries },
) {
  let seed = 7;
  const chance = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const store = memoryStore();
  const noSummary = modelOf(async function* () {
    throw new Error("no summary today");
  });
  const agent = await createAgent({
    name: "helper",
    model: openai({ baseUrl: url, apiKey: "none", model: "smollm2" }),
    store,
    systemPrompt: "Answer in one short sentence.",
    sessionTools: false,
    generate: { temperature: 0, maxTokens: 16 },
    ...(isWithoutSummaries ? { compaction: { triggerMessages: 0, triggerTokens: 0, model: noSummary } } : {}),
  });
  const slot = { sessionId: "s" };
  const seen = { errors: [], refusals: 0, recovered: 0, summaries: 0, failed: 0, undone: 0, leftOut: false };
  const started = Date.now();
  const question = (n) => {
    const [low, high] = words;
    const length = Math.floor(low * (high / low) ** chance());
    return `Note ${n}: the ${birds[n % birds.length]} with ring ${7_000 + n} was seen. ${"by the quiet river ".repeat(length / 4)}`;
  };
  for (let n = 0; n < turns; n++) {
    const call = agent.stream(question(n), slot);
    const events = await readAll(call).catch((error) => (seen.errors.push(`${n}: ${error.code} ${error.message}`), []));
    const count = (type) => events.filter((event) => event.type === type).length;
    seen.refusals += events.filter(({ type, finish }) => type === "model-end" && finish === "error").length;
    seen.recovered += count("overflow-recovered");
    seen.summaries += count("compaction-end");
    seen.failed += count("compaction-failed");
  }
  seen.seconds = (Date.now() - started) / 1_000;
  const { context } = await agent.getAgentState(slot);
  seen.leftOut = context[0].metadata?.note === "left-out";
  seen.shown = context.length;
  const log = await agent.history(slot, { limit: 10_000 });
  seen.log = log.map(({ role, content }) => (role === "user" ? textOf({ content }).slice(0, 45) : role));
  // The same session, with a model that looks for the first note with a tool.
  const script = [{ toolCalls: [{ name: "session_search", input: { query: `${birds[0]} 7000` } }] }, { text: "found" }];
  const reader = await createAgent({ name: "helper", model: scriptedModel(script), store });
  await agent.drain();
  await reader.call("Where was it?", slot);
  const results = (await reader.history(slot)).filter(({ role }) => role === "tool");
  seen.found = JSON.stringify(results.at(-1).content);
  while (seen.undone < turns && "replaces" in ((await agent.getAgentState(slot)).context[0].metadata ?? {})) {
    await agent.undoCompaction(slot);
    seen.undone += 1;
  }
  seen.shownAgain = (await agent.getAgentState(slot)).context.length;
  return seen;
}

/** Holds the conversation on a server, and checks that it went on and that nothing is lost. */
export async function checkRealConversation(tell, server, given) {
  const seen = await tell(realConversation, { url: server.url, birds, isWithoutSummaries: false, ...given });
  const { log, found, ...numbers } = seen;
  console.log(`${given.turns} turns with a real model: ${JSON.stringify(numbers)}`);
  assert.deepEqual(seen.errors, []);
  assert.ok(seen.refusals > 0 && seen.recovered > 0, "the window was never full");
  const asked = log.filter((text) => text.startsWith("Note"));
  assert.deepEqual(asked.map((text) => Number(/\d+/.exec(text)[0])), asked.map((_, n) => n));
  assert.equal(asked.length, given.turns);
  assert.equal(log.length, 2 * given.turns);
  assert.ok(seen.shown < log.length);
  assert.match(found, /ring 7000/);
  assert.ok(seen.undone > 0);
  assert.equal(seen.shownAgain, log.length + 4);
  return seen;
}
