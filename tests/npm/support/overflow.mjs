// Requests that a provider counts and refuses as too large.
import { story } from "./project.mjs";

/** Makes, for every dialect, calls that overflow until this number of them was recovered. */
export function overflowStories(most) {
  for (const dialect of ["openai", "anthropic", "gemini"]) {
    story(
      `${most} streams that ${dialect} refuses as too large are made smaller and answered, without the input said twice`,
      async ({ createAgent, memoryStore, openProvider, speak, readAll, assert, ...models }, { dialect, most }) => {
        const limit = 6_000;
        const refusals = {
          openai: { error: { code: "context_length_exceeded", message: "This model's maximum context length is 6000 tokens." } },
          anthropic: { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 9000 tokens > 6000 maximum" } },
          gemini: { error: { code: 400, status: "INVALID_ARGUMENT", message: "The input token count (9000) exceeds the maximum number of tokens allowed (6000)." } },
        };
        let refused = 0;
        const provider = await openProvider(({ body }) => {
          if (JSON.stringify(body).length / 4 > limit) return { status: (refused++, 400), body: JSON.stringify(refusals[dialect]) };
          return { body: speak[dialect]({ text: JSON.stringify(body).includes("You condense") ? "the gist" : "all right" }) };
        });
        const model = models[dialect]({ baseUrl: provider.url, apiKey: "k", model: "small", contextWindow: limit });
        const agent = await createAgent({ name: "helper", model, store: memoryStore(), retries: { attempts: 1 } });
        const slot = { sessionId: "s" };
        let [recovered, n] = [0, 0];
        for (; recovered < most; n++) {
          const events = await readAll(agent.stream(`question ${n} ${"words ".repeat(900)}`, slot));
          assert.equal(events.at(-1).type, "call-end");
          recovered += events.filter(({ type }) => type === "overflow-recovered").length;
        }
        assert.ok(refused >= recovered, `${recovered} of ${refused}`);
        const said = await agent.history(slot, { limit: 100_000 });
        assert.equal(said.length, 2 * n);
        assert.equal(new Set(said.map(({ id }) => id)).size, 2 * n);
        await provider.close();
      },
      { dialect, most, patienceMs: 20_000 + 1_000 * most },
    );
  }
}
