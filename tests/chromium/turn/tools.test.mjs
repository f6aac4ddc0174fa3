// Tools in a page: what they throw and return, and calls of the agent from inside a tool.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

story("V-06, V-11: in a page too, a tool that throws or returns any value gives a result, and the call ends normally", async ({ page }) => {
  const { results, text } = await within(page, async ({ createAgent, customModel, memoryStore, textOf, tool }) => {
    const ring = {};
    ring.ring = ring;
    const ways = {
      throws_a_string: () => {
        throw "just words";
      },
      throws_undefined: () => {
        throw undefined;
      },
      throws_a_dom_exception: () => {
        throw new DOMException("no access", "NotAllowedError");
      },
      rejects_with_a_number: () => Promise.reject(5),
      returns_undefined: () => undefined,
      returns_a_big_integer: () => ({ n: 9_007_199_254_740_993n }),
      returns_a_ring: () => ring,
      returns_a_node: () => document.body,
    };
    const tools = Object.entries(ways).map(([name, execute]) =>
      tool({ name, description: "one way", inputSchema: { type: "object" }, execute }),
    );
    const model = customModel({
      id: "asks-all",
      async *generate({ messages }) {
        if (messages.length > 1) yield { type: "text", text: "done" };
        else for (const [index, name] of Object.keys(ways).entries()) yield { type: "tool-call", index, id: `call-${index}`, name, arguments: "{}" };
      },
    });
    const agent = await createAgent({ name: "helper", model, tools, store: memoryStore() });
    const reply = await agent.call("go", { sessionId: "s" });
    const blocks = reply.messages.flatMap(({ content }) => content).filter(({ type }) => type === "tool_result");
    return { text: textOf(reply.message), results: Object.fromEntries(blocks.map(({ name, state, output }) => [name, [state, textOf(output)]])) };
  });
  assert.equal(text, "done");
  const errors = ["throws_a_string", "throws_undefined", "throws_a_dom_exception", "rejects_with_a_number", "returns_a_ring"];
  for (const name of errors) assert.equal(results[name][0], "error", `${name}: ${results[name]}`);
  assert.match(results.throws_a_string[1], /just words/);
  assert.match(results.throws_a_dom_exception[1], /no access/);
  assert.equal(results.returns_undefined[0], "success");
  assert.match(results.returns_a_big_integer[1], /9007199254740993/);
  assert.equal(Object.keys(results).length, 8);
});

story("V-07: in a page too, a tool may call another session of its own agent", async ({ page }) => {
  const answer = await within(page, async ({ createAgent, customModel, memoryStore, textOf, tool }) => {
    let agent;
    const ask = tool({
      name: "ask",
      description: "asks elsewhere",
      inputSchema: { type: "object" },
      execute: async () => (await agent.call("what is it?", { sessionId: "inner" })).text,
    });
    const model = customModel({
      id: "asks-inside",
      async *generate({ messages }) {
        if (textOf(messages[0]) === "what is it?") yield { type: "text", text: "an answer" };
        else if (messages.length === 1) yield { type: "tool-call", index: 0, id: "call-1", name: "ask", arguments: "{}" };
        else yield { type: "text", text: "heard" };
      },
    });
    agent = await createAgent({ name: "helper", model, tools: [ask], store: memoryStore() });
    const reply = await agent.call("go", { sessionId: "outer" });
    const inner = await agent.history({ sessionId: "inner" });
    return { text: reply.text, inner: inner.map((message) => textOf(message)) };
  });
  assert.deepEqual(answer, { text: "heard", inner: ["what is it?", "an answer"] });
});
