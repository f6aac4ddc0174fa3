// Rules of turns, for any store, in Node, workerd and a page: rejected questions, kept permissions, earlier questions, a compaction
// of the application's own, and a state that is put.
import assert from "node:assert/strict";

/**
 * Plays the rules on the default store or the given one, and returns what was seen. `fresh` makes another agent on the same store.
 * The source is written into a program of another process or page, so it can use only its parameters.
 */
export async function turnRules({ createAgent, customModel, tool, textOf, LockgateError }, store) {
  let shown = [];
  const model = customModel({
    id: "rules",
    async *generate({ messages }) {
      shown = messages.map((message) => textOf(message));
      const last = messages.at(-1);
      const said = textOf(last);
      if (said.includes("broken picture")) throw new LockgateError("MODEL_BAD_REQUEST", "the picture is broken");
      if (last.role === "user" && said.startsWith("send")) yield { type: "tool-call", index: 0, id: `c${messages.length}`, name: "send", arguments: "{}" };
      else yield { type: "text", text: `answer ${messages.length}` };
    },
  });
  const send = tool({ name: "send", description: "Sends.", inputSchema: { type: "object" }, needsApproval: true, execute: () => "sent" });
  const own = {
    name: "own compaction",
    reviseContext: (context, { sessionId }) => (sessionId === "revised" && context.length >= 5 ? { context: context.slice(-1), summary: "they talked" } : undefined),
  };
  const fresh = () => createAgent({ name: "helper", model, tools: [send], middleware: [own], ...(store === undefined ? {} : { store }) });
  const agent = await fresh();
  const slot = (sessionId) => ({ userId: "ada", sessionId });
  const seen = {};

  await agent.call("hello", slot("rejected"));
  seen.code = await agent.call("a broken picture", slot("rejected")).catch((error) => error.code);
  await agent.call("and now?", slot("rejected"));
  seen.shownAfterRejection = shown;
  const history = await (await fresh()).history(slot("rejected"));
  seen.rejected = history.map((message) => [textOf(message), message.turn ?? null, message.turnError?.code ?? null]);

  const asked = await agent.call("send it", slot("kept"));
  const [{ toolCallId, suggestedRules }] = asked.asks;
  await agent.confirm(slot("kept"), [{ toolCallId, approve: true, remember: suggestedRules }]).result;
  seen.resent = (await (await fresh()).resend(slot("kept")).result).reason;

  for (const n of [1, 2, 3]) await agent.call(`question ${n}`, slot("earlier"));
  const [, , second] = await agent.history(slot("earlier"));
  await (await fresh()).resend(slot("earlier"), { from: second.id, input: "another question" }).result;
  seen.shownFromEarlier = shown;
  seen.branches = (await agent.branches(slot("earlier"))).length;

  for (const n of [1, 2, 3, 4]) await agent.call(`question ${n}`, slot("revised"));
  seen.shownRevised = shown.length;
  const again = await fresh();
  const revised = await again.getAgentState(slot("revised"));
  seen.revised = [revised.summary, revised.context.length, (await again.history(slot("revised"))).length];
  await again.putAgentState(slot("revised"), { ...revised, summary: "put by hand" });
  const put = await agent.getAgentState(slot("revised"));
  seen.put = [put.summary, put.context.length, new Set((await agent.history(slot("revised"))).map(({ id }) => id)).size];
  await agent.undoCompaction(slot("revised"));
  const undone = await agent.getAgentState(slot("revised"));
  seen.undone = [undone.summary, undone.context.length];
  await agent.close();
  return seen;
}

/** Checks what was seen. */
export function checkTurnRules(seen) {
  assert.equal(seen.code, "MODEL_BAD_REQUEST");
  assert.deepEqual(seen.shownAfterRejection, ["hello", "answer 1", "and now?"]);
  assert.deepEqual(seen.rejected, [
    ["hello", null, null],
    ["answer 1", null, null],
    ["a broken picture", "failed", "MODEL_BAD_REQUEST"],
    ["and now?", null, null],
    ["answer 3", null, null],
  ]);
  assert.equal(seen.resent, "stop", "the remembered rule was not taken back by the resend");
  assert.deepEqual(seen.shownFromEarlier, ["question 1", "answer 1", "another question"]);
  assert.equal(seen.branches, 2);
  assert.equal(seen.shownRevised, 4);
  assert.deepEqual(seen.revised, ["they talked", 5, 8]);
  assert.deepEqual(seen.put, ["put by hand", 5, 8]);
  assert.deepEqual(seen.undone, ["", 8]);
}
