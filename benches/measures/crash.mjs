// The time after a crash of the engine until every open call is rejected, and until the next call is answered.
import { createAgent, customModel, memoryStore, textOf } from "../../dist/entry/node.js";
import { loadEngine } from "../../dist/runtime/wasm.js";

export async function measure(_name, { nTraps, nSessions }) {
  let waiting = 0;
  let allWait = () => {};
  const model = customModel({
    id: "held",
    async *generate({ messages }, { signal }) {
      if (textOf(messages.at(-1)) === "and now?") return yield { type: "text", text: "here" };
      const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
      if (++waiting === nSessions) allWait();
      await stopped;
    },
  });
  const agent = await createAgent({ name: "bench", model, store: memoryStore() });
  const engine = await loadEngine(() => {
    throw new Error("the agent has loaded no engine");
  });
  const times = { settled: [], next: [] };
  let lost = 0;
  for (let n = 0; n < nTraps; n++) {
    waiting = 0;
    const reached = new Promise((resolve) => (allWait = resolve));
    const slots = Array.from({ length: nSessions }, (_, at) => ({ sessionId: `s${n}.${at}` }));
    const calls = slots.map((slot) => agent.call("hello", slot));
    await reached;
    const started = performance.now();
    crash(engine.instance());
    await Promise.allSettled(calls);
    times.settled.push(performance.now() - started);
    await agent.call("and now?", slots[0]);
    times.next.push(performance.now() - started);
    lost += await forget(agent, slots);
  }
  return { ...summed("settled", times.settled), ...summed("next", times.next), "crash.lost": lost };
}

// A pointer to an object that does not exist: the wasm throws, and its state can no longer be trusted.
function crash(instance) {
  try {
    instance.enter(() => instance.core.Task.prototype.poll.call({ __wbg_ptr: 0 }));
  } catch {
    if (!instance.alive) return;
  }
  throw new Error("the instance did not crash");
}

/** How many sessions have lost their accepted input; clears all of them. */
async function forget(agent, slots) {
  let lost = 0;
  for (const slot of slots) {
    if (slot !== slots[0]) await agent.call("and now?", slot);
    const [first] = await agent.history(slot);
    if (first === undefined || textOf(first) !== "hello") lost += 1;
    await agent.deleteSession(slot);
  }
  return lost;
}

function summed(name, times) {
  const sorted = times.sort((one, other) => one - other);
  return { [`crash.${name}`]: sorted[Math.floor(sorted.length / 2)], [`crash.${name}.slowest`]: sorted.at(-1) };
}
