// Tools that are generators, and tools that show blocks while they run.
import { test } from "node:test";
import { story } from "../support/project.mjs";
import { startWorker } from "../support/worker.mjs";
import { checkGenerators, generators } from "./generators.mjs";

story(
  "in Node: a generator as a tool shows what it yields and answers with what it returns, and its return is called at a stop and at its deadline",
  async (_, { shared }) => {
    const { generators, checkGenerators } = await import(shared);
    checkGenerators(await generators(await import("lockgate")));
  },
  { shared: new URL("generators.mjs", import.meta.url).href },
);

test("in workerd: a generator as a tool shows what it yields and answers with what it returns, and its return is called at a stop and at its deadline", async (context) => {
  const { miniflare } = await startWorker(`
    import * as lockgate from "lockgate";
    ${generators}
    export default { fetch: async () => Response.json(await generators(lockgate)) };
  `);
  context.after(() => miniflare.dispose());
  checkGenerators(await (await miniflare.dispatchFetch("http://x.test/")).json());
});

story(
  "a tool shows blocks while it runs, a block that is none is refused, and what it shows after its end or without end is dropped",
  async ({ createAgent, memoryStore, scriptedModel, tool, readAll, outcomesOf, assert }) => {
    const image = { type: "image", source: { type: "base64", mediaType: "image/png", data: "aGk=" } };
    let late;
    const draw = tool({
      name: "draw",
      description: "Draws.",
      inputSchema: { type: "object" },
      execute(_, context) {
        late = () => context.emit("too late");
        context.emit("first ");
        context.emit(image);
        context.emit({ type: "text", text: "a block of text" });
        context.emit("then");
        let refused;
        for (const wrong of [{}, { type: "image" }, [image]]) {
          try {
            context.emit(wrong);
          } catch (error) {
            refused = [...(refused ?? []), error.code];
          }
        }
        return JSON.stringify(refused);
      },
    });
    const flood = tool({
      name: "flood",
      description: "Floods.",
      inputSchema: { type: "object" },
      execute(_, context) {
        late();
        for (let n = 0; n < 100; n++) context.emit("x".repeat(1_000_000));
        return "over";
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "draw", input: {}, id: "c1" }] }, { toolCalls: [{ name: "flood", input: {}, id: "c2" }] }, "done"]);
    const agent = await createAgent({ name: "helper", model, tools: [draw, flood], store: memoryStore() });
    const events = await readAll(agent.stream("go", { sessionId: "s" }));
    const shown = (id) => events.filter(({ type, toolCallId }) => type === "tool-delta" && toolCallId === id);
    assert.deepEqual(shown("c1").map(({ delta, block }) => delta ?? block), ["first ", image, { type: "text", text: "a block of text" }, "then"]);
    assert.equal(shown("c2").map(({ delta }) => delta).join("").length, 20_000_000);
    assert.ok(events.some(({ type, message }) => type === "warning" && message.includes("emitted more than")));
    const [wrong, over] = outcomesOf(events.at(-1).reply);
    assert.deepEqual([JSON.parse(wrong), over], [["INPUT_INVALID", "INPUT_INVALID", "INPUT_INVALID"], "over"]);
  },
);
