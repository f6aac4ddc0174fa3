// A long conversation with a small context window, for any store, in Node and in a page, in a short and a long version.
import assert from "node:assert/strict";

/**
 * Holds a conversation of this many turns with a context window of 16,000 tokens, and returns what was measured. The source is
 * written into a program of another process or page, so it can use only its parameters.
 */
export async function longConversation({ createAgent, customModel, tool, textOf, ...kit }, { turns, store, transcript }) {
  const { checkTranscript } = await import(transcript);
  let seed = 7;
  const chance = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  // Log-uniform from 10 characters up, one in a hundred over 100,000.
  const size = () => (chance() < 0.01 ? 100_001 + Math.floor(chance() * 50_000) : Math.floor(10 * 2 ** (chance() * 12)));
  const seen = { largest: 0, refused: 0, invalid: [], summaries: 0, commits: 0, over: [], largestHead: 0, logBytes: 0, indexBytes: 0, memory: [] };
  // Four characters per token, and a few tokens for the structure around them.
  const count = ({ system, messages, tools }) => {
    const texts = messages.map(({ content }) => JSON.stringify(content).length / 4 + 4);
    return Math.ceil(texts.reduce((sum, each) => sum + each, (system.length + JSON.stringify(tools).length) / 4));
  };
  const wanted = (messages) => (/Find it/.test(textOf(messages.at(-1))) ? [{ name: "session_search", input: { query: "albatross" } }] : undefined);
  const model = customModel({
    id: "windowed",
    contextWindow: 16_000,
    async *generate(request) {
      const tokens = count(request);
      seen.largest = Math.max(seen.largest, tokens);
      if (tokens > 16_000) {
        seen.refused += 1;
        throw new Error("prompt is too long: context_length_exceeded");
      }
      if (request.system.startsWith("You condense")) {
        seen.summaries += 1;
        return yield { type: "text", text: `## SESSION INTENT\ntalk\n## SUMMARY\n${seen.summaries} summaries` };
      }
      seen.invalid.push(...checkTranscript(request.messages, "openai"));
      yield { type: "usage", usage: { inputTokens: tokens } };
      const { role } = request.messages.at(-1);
      const one = () => ({ name: "letters", input: { n: size() } });
      const asks = role === "user" || chance() < 0.3;
      const calls = wanted(request.messages) ?? (asks ? Array.from({ length: 1 + Math.floor(chance() * 2) }, one) : []);
      for (const [index, { name, input }] of calls.entries()) {
        yield { type: "tool-call", index, id: `c-${index}-${Math.floor(chance() * 1e9)}`, name, arguments: JSON.stringify(input) };
      }
      if (calls.length === 0) yield { type: "text", text: "So it is. ".repeat(1 + Math.floor(chance() * 20)) };
    },
  });
  const letters = tool({
    name: "letters",
    description: "letters",
    inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    execute: ({ n }) => "abcdefghi\n".repeat(Math.ceil(n / 10)).slice(0, n),
  });
  const counted = (store) => {
    const commit = (batch) => {
      const of = (isIt) => batch.put.filter(({ key }) => isIt(key)).reduce((sum, { value }) => sum + value.length, 0);
      const [all, head] = [of(() => true), of((key) => key.endsWith("/head"))];
      const said = of((key) => key.includes("/log/") || key.includes("/input/"));
      // Acceptance and exit both write the line of the session list.
      const line = of((key) => /^[^/]*\/[^/]*\/index\//.test(key));
      seen.commits += 1;
      seen.largestHead = Math.max(seen.largestHead, head);
      seen.logBytes += of((key) => key.includes("/log/"));
      seen.indexBytes += of((key) => key.includes("/search/"));
      if (said > 0 && all > 2 * said + head + line) seen.over.push([all, said, head, line]);
      return store.commit(batch);
    };
    return { name: store.name, capabilities: store.capabilities, get: (keys) => store.get(keys), list: (prefix, page) => store.list(prefix, page), commit };
  };
  const made = {
    memory: () => kit.memoryStore(),
    files: async () => (await import("lockgate/stores/node")).fileStore("kept"),
    indexedDb: () => kit.indexedDbStore(),
  };
  const agent = await createAgent({ name: "helper", model, store: counted(await made[store]()), tools: [letters], compaction: true, toolResultEviction: true, maxIterations: 6 });
  const slot = { sessionId: "s", userId: "ada" };
  const heap = async () => {
    if (globalThis.process === undefined) return;
    const { default: v8 } = await import("node:v8");
    const { default: vm } = await import("node:vm");
    v8.setFlagsFromString("--expose-gc");
    vm.runInNewContext("gc")();
    const { heapUsed, external } = process.memoryUsage();
    seen.memory.push(Math.round((heapUsed + external) / 1e6));
  };
  // Texts are compared by their digest, so that the test itself does not use the memory that it measures.
  const digest = (message) => {
    const text = JSON.stringify(message);
    let sum = 0x811c9dc5;
    for (let n = 0; n < text.length; n++) sum = Math.imul(sum ^ text.charCodeAt(n), 0x01000193);
    return `${text.length}.${sum >>> 0}`;
  };
  const said = [];
  for (let turn = 0; turn < turns; turn++) {
    const question = turn === 7 ? "Question 7: my boat is called Albatross" : `Question ${turn}`;
    const { messages } = await agent.call(question, slot);
    said.push(...messages.map(digest));
    // The pauses of a reader, in which the search index is written.
    if (turn % 50 === 49) await agent.drain();
    if (turn === Math.floor(turns / 3)) await heap();
  }
  await agent.drain();
  await heap();
  const history = (await agent.history(slot, { limit: 1_000_000 })).map(digest);
  seen.unchanged = said.length === history.length && said.every((message, n) => message === history[n]);
  const { messages } = await agent.call("Find it.", slot);
  const found = messages.flatMap(({ content }) => content).find(({ type, name }) => type === "tool_result" && name === "session_search");
  seen.found = JSON.stringify(found?.output ?? null);
  seen.tokens = (await agent.inspect(slot)).tokens;
  await agent.close();
  return seen;
}

/** Checks the result of such a conversation. */
export function checkConversation(seen, { turns }) {
  assert.deepEqual(seen.invalid, []);
  assert.equal(seen.refused, 0, "no request over the window");
  assert.ok(seen.largest > 4_000 && seen.summaries > turns / 40, JSON.stringify(seen));
  assert.ok(seen.unchanged, "every message is in the history, unchanged");
  assert.deepEqual(seen.over, [], `of ${seen.commits} commits: more than twice what is new, a head and a line of the session list`);
  assert.ok(seen.largestHead <= 4_096, `${seen.largestHead} bytes of head`);
  assert.ok(seen.indexBytes > 0 && seen.indexBytes < 2 * seen.logBytes, `${seen.indexBytes} bytes of index for ${seen.logBytes} of log`);
  assert.match(seen.found, /my boat is called Albatross/);
  assert.ok(seen.tokens < 16_000);
}
