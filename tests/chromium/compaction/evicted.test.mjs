// A tool result that is too large to be shown whole is a file, which other tabs find until its session is deleted.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

const make = async ({ createAgent, customModel, tool }) => {
  const model = customModel({
    id: "asks once",
    async *generate({ messages }) {
      const name = messages.at(-1).role === "user" ? messages.at(-1).content[0].text : undefined;
      if (name === undefined) return yield { type: "text", text: "done" };
      const input = name === "grep_files" ? { pattern: "needle", path: "tool-results" } : {};
      yield { type: "tool-call", index: 0, id: `c-${name}`, name, arguments: JSON.stringify(input) };
    },
  });
  const huge = tool({ name: "huge", description: "huge", inputSchema: { type: "object" }, execute: () => "needle ".repeat(20_000) });
  window.agent = await createAgent({ name: "helper", model, tools: [huge], toolResultEviction: true, workspace: true });
};

/** Lets the model call a tool. Returns the text of its result in the history. */
const use = (page, name, sessionId) =>
  within(page, async (_, { name, sessionId }) => {
    const { messages } = await window.agent.call(name, { userId: "ada", sessionId });
    return messages[2].content[0].output[0].text;
  }, { name, sessionId });

const files = (page) => page.evaluate("window.agent.files.list('ada')");

story("an evicted result is a file that another tab finds, and it is deleted with its session", async ({ page, open }) => {
  await within(page, make);
  assert.equal((await use(page, "huge", "one")).length, 140_000);
  const other = await open();
  await within(other, make);
  const [path, ...more] = await files(other);
  assert.deepEqual([/^tool-results\/one\/.+\.txt$/.test(path), more], [true, []]);
  assert.ok((await use(other, "grep_files", "two")).startsWith(`${path}:1:needle`));
  await other.evaluate("window.agent.deleteSession({ userId: 'ada', sessionId: 'one' })");
  assert.deepEqual(await files(page), []);
});
