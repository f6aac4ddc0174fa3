// An approval that one tab asks for and another tab gives, after the first tab is closed.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

/** Makes an agent in a page whose tool needs approval and calls `ran` when it runs; `window.agent`. */
const begin = (page) =>
  within(page, async ({ createAgent, tool, customModel }) => {
    const send = tool({
      name: "send",
      description: "sends",
      inputSchema: { type: "object", properties: { to: { type: "string" } } },
      needsApproval: true,
      async execute({ to }) {
        await window.ran(to);
        return "sent";
      },
    });
    const model = customModel({
      id: "asks",
      async *generate({ messages }) {
        if (messages.at(-1).role === "tool") return yield { type: "text", text: "It is sent." };
        yield { type: "tool-call", index: 0, id: "c1", name: "send", arguments: '{"to":"bob"}' };
      },
    });
    window.agent = await createAgent({ name: "helper", model, tools: [send] });
  });

// R40, A-03, A-13
story("a question of one tab is answered in a second one after the first is closed, and the tool runs once", async ({ context, page, open }) => {
  const ran = [];
  await context.exposeFunction("ran", (to) => ran.push(to));
  await begin(page);
  const reason = await within(page, async () => (await window.agent.call("send it", { sessionId: "s" })).reason);
  assert.equal(reason, "asking");
  await page.close();
  const [second, third] = [await open(), await open()];
  await Promise.all([begin(second), begin(third)]);
  const asks = await within(second, () => window.agent.asks({ sessionId: "s" }));
  assert.deepEqual(asks.map(({ kind, toolCallId, input }) => [kind, toolCallId, input]), [["approval", "c1", { to: "bob" }]]);
  // Both tabs approve; one approval counts.
  const answer = (from) =>
    within(from, async () => {
      const call = window.agent.confirm({ sessionId: "s" }, [{ toolCallId: "c1", approve: true }]);
      return call.result.then(({ text }) => text, ({ code }) => code);
    });
  const answers = await Promise.all([answer(second), answer(third)]);
  assert.deepEqual(answers.sort(), ["It is sent.", "NOT_ASKING"]);
  assert.deepEqual(ran, ["bob"]);
  assert.deepEqual(await within(third, () => window.agent.asks({ sessionId: "s" })), []);
});

//
story("an approval is used up if the tab is closed while the tool runs: no other tab can run it again", async ({ context, page, open }) => {
  let arrived;
  const running = new Promise((resolve) => (arrived = resolve));
  let n = 0;
  await context.exposeFunction("ran", () => {
    n += 1;
    arrived();
    return new Promise(() => {});
  });
  await begin(page);
  await within(page, async () => void (await window.agent.call("send it", { sessionId: "s" })));
  const spent = within(page, async () => void (await window.agent.confirm({ sessionId: "s" }, [{ toolCallId: "c1", approve: true }]).result)).catch(() => {});
  await running;
  await page.close();
  await spent;
  const second = await open();
  await begin(second);
  const outcome = await within(second, async () => {
    const call = window.agent.confirm({ sessionId: "s" }, [{ toolCallId: "c1", approve: true }]);
    return call.result.then(({ reason }) => reason, ({ code }) => code);
  });
  assert.equal(outcome, "NOT_ASKING");
  assert.equal(n, 1);
});
