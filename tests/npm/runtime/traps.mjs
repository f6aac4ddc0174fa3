// Many traps, each while fifty sessions have a call open.
import { story } from "../support/testing-build.mjs";

/** The test, with this number of traps. */
export const traps = (nTraps) => story(
  `V-01: ${nTraps} traps with fifty sessions open: every call settles within a second, later calls work, and no accepted input is lost`,
  async ({ createAgent, customModel, memoryStore, textOf, trapOf, assert }, { wasm, nTraps, nSessions }) => {
    let waiting = 0;
    let allWait = () => {};
    let isAnswering = false;
    const model = customModel({
      id: "held",
      async *generate(_request, { signal }) {
        if (isAnswering) return yield { type: "text", text: "at last" };
        const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
        if (++waiting === nSessions) allWait();
        await stopped;
      },
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const trap = await trapOf(wasm);
    const slots = Array.from({ length: nSessions }, (_, n) => ({ sessionId: `s${n}` }));
    let slowest = 0;
    for (let n = 0; n < nTraps; n++) {
      waiting = 0;
      const reached = new Promise((resolve) => (allWait = resolve));
      const outcomes = slots.map((slot) => agent.call(`q${n}`, slot).then(() => "answered", ({ code }) => code));
      await reached;
      const started = performance.now();
      trap();
      assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(["ENGINE_CRASHED"]), `trap ${n}`);
      slowest = Math.max(slowest, performance.now() - started);
      // Sessions are checked and cleared from time to time, so that the test does not get slower.
      if (n % 10 === 9) await settle(n - 9, n);
    }
    assert.ok(slowest < 1_000, `it took ${slowest} ms`);

    async function settle(first, last) {
      isAnswering = true;
      const wanted = [...Array.from({ length: last - first + 1 }, (_, at) => `q${first + at}`), "and now?"];
      const answers = await Promise.all(slots.map((slot) => agent.call("and now?", slot)));
      assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set(["at last"]));
      for (const slot of slots) {
        const asked = (await agent.history(slot)).filter(({ role, name }) => role === "user" && name !== "system").map(textOf);
        assert.deepEqual(asked, wanted, JSON.stringify(slot));
        await agent.deleteSession(slot);
      }
      isAnswering = false;
    }
  },
  { nTraps, nSessions: 50, patienceMs: 600_000 },
);
