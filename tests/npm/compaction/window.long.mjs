// Long conversations with a small context window: the long version.
import assert from "node:assert/strict";
import { test } from "node:test";
import { overflowStories } from "../support/overflow.mjs";
import { tell } from "../support/project.mjs";
import { checkConversation, longConversation } from "./window.mjs";

// A memory store keeps the log in memory; with files the memory must not grow.
for (const [store, turns, and] of [["memory", 5_000, ""], ["files", 1_000, ", and memory flat"]]) {
  test(`${turns} turns on ${store} stay within a window of 16,000 tokens, with nothing lost${and}`, async () => {
    const seen = await tell(longConversation, { turns, store, transcript: "lockgate/transcript", patienceMs: 60_000 + turns * 200 });
    checkConversation(seen, { turns });
    const [early, late] = seen.memory;
    if (and !== "") assert.ok(late < 1.5 * early + 10, `${early} MB after a third, ${late} MB at the end`);
  });
}

// 500 in total, over three dialects.
overflowStories(167);
