// Conversations with a real language model in a window of 2,048 tokens, where such a model can be installed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startModelServer, withoutModelServer } from "../support/model-server.mjs";
import { tell } from "../support/project.mjs";
import { checkRealConversation } from "./real-model.mjs";

const words = [190, 230];

if (withoutModelServer) console.log(`Left out: ${withoutModelServer}`);
else {
  test("10 turns with a real model in a window of 2,048 tokens all end in an answer", async () => {
    const server = await startModelServer({ window: 2_048 });
    const seen = await checkRealConversation(tell, server, { turns: 10, words, patienceMs: 300_000 });
    await server.stop();
    assert.equal(seen.failed, 0);
  });

  test("10 turns with a real model go on without a summary, and what is left out is found by session_search", async () => {
    const server = await startModelServer({ window: 2_048 });
    const seen = await checkRealConversation(tell, server, { turns: 10, words, isWithoutSummaries: true, patienceMs: 300_000 });
    await server.stop();
    assert.ok(seen.failed > 0 && seen.leftOut);
  });
}
