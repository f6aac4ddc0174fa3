// A long conversation with a real language model in a window of 2,048 tokens.
import { test } from "node:test";
import { startModelServer, withoutModelServer } from "../support/model-server.mjs";
import { tell } from "../support/project.mjs";
import { checkRealConversation } from "./real-model.mjs";

if (withoutModelServer) console.log(`Left out: ${withoutModelServer}`);
else {
  for (const isWithoutSummaries of [false, true]) {
    const how = isWithoutSummaries ? "without summaries" : "with its summaries";
    test(`300 turns with a real model in a window of 2,048 tokens all end in an answer, ${how}`, async () => {
      const server = await startModelServer({ window: 2_048 });
      const given = { turns: 300, words: [5, 400], isWithoutSummaries, patienceMs: 7_200_000 };
      await checkRealConversation(tell, server, given);
      await server.stop();
    });
  }
}
