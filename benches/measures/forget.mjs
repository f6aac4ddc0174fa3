// The memory of one agent after very many sessions, over a store that keeps nothing: growth is a leak.
import { createAgent, customModel, memoryStore } from "../../dist/entry/node.js";
import { held } from "../memory.mjs";

const AT_ONCE = 100;

export async function measure(_name, { few, many }) {
  const model = customModel({
    id: "short",
    async *generate() {
      yield { type: "text", text: "hello" };
    },
  });
  const { name, capabilities } = memoryStore();
  const store = { name, capabilities, get: async (keys) => keys.map(() => null), list: async () => [], commit: async () => "ok" };
  const agent = await createAgent({ name: "bench", model, store });
  const sizes = {};
  for (let n = AT_ONCE; n <= many; n += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => agent.call("hello", { sessionId: `s${n + at}` })));
    if (n === few || n === many) sizes[n] = await held();
  }
  return { "forget.few": sizes[few] / 1e6, "forget.many": sizes[many] / 1e6, "forget.growth": sizes[many] / sizes[few] };
}
