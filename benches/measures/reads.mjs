// The cost for a JavaScript model to read the last message of a long history, compared with a short one; and the cost of
// the first call, when the history is not in memory yet.
import { createAgent, customModel, memoryStore, textOf } from "../../dist/entry/node.js";
import { questionsAndAnswers } from "../engines/lockgate.mjs";
import { median, sample, timed } from "../stats.mjs";
import { question } from "../script.mjs";

export async function measure(_name, { few, many, forMs }) {
  const short = await reading(few, forMs);
  const long = await reading(many, forMs);
  return { "reads.few": short.again, "reads.many": long.again, "reads.growth": long.again / short.again, "reads.first": long.first };
}

async function reading(nMessages, forMs) {
  const model = customModel({
    id: "reader",
    async *generate({ messages }) {
      yield { type: "text", text: textOf(messages.at(-1)) };
    },
  });
  const store = memoryStore();
  const agent = await createAgent({ name: "bench", model, store });
  const slot = { sessionId: "s" };
  await sample((n) => agent.call(question(n), { sessionId: `warm-${n}` }), { atMost: 400, atLeast: 60, forMs });
  await agent.append(slot, questionsAndAnswers(nMessages));
  await agent.drain();
  await agent.close();
  const another = await createAgent({ name: "bench", model, store });
  const first = await timed(() => another.call(question(0), slot));
  const times = await sample((n) => another.call(question(n), slot), { atMost: 40, atLeast: 20, forMs });
  await another.close();
  return { first: first * 1_000, again: median(times) * 1_000 };
}
