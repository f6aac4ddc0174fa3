// Code of the user's that never settles: every call ends all the same, and its session is free.
import { test } from "node:test";
import { story } from "../support/project.mjs";
import { startWorker } from "../support/worker.mjs";
import { checkSilentHooks, silentHooks } from "./silent-hooks.mjs";

story(
  "in Node: a hook that never settles fails its call at its deadline, and a stop, an abort, a deadline and a deletion end the call at once",
  async (_, { silent }) => {
    const { silentHooks, checkSilentHooks } = await import(silent);
    checkSilentHooks(await silentHooks(await import("lockgate")));
  },
  { silent: new URL("silent-hooks.mjs", import.meta.url).href },
);

test("in workerd: a hook that never settles fails its call at its deadline, and a stop, an abort, a deadline and a deletion end the call at once", async (context) => {
  const { miniflare } = await startWorker(`
    import * as lockgate from "lockgate";
    ${silentHooks}
    export default { fetch: async () => Response.json(await silentHooks(lockgate)) };
  `);
  context.after(() => miniflare.dispose());
  checkSilentHooks(await (await miniflare.dispatchFetch("http://x.test/")).json());
});

story(
  "validate of an output schema that never settles has the deadline of a hook, and a stop or an abort ends it at once",
  async ({ createAgent, modelOf, memoryStore, rejection, signpost, assert }) => {
    const model = modelOf(async function* () {
      yield { type: "text", text: '{"n":1}' };
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore(), timeouts: { hook: 100 } });
    const patient = await createAgent({ name: "patient", model, store: memoryStore() });
    const slot = { sessionId: "s" };
    const silent = () => {
      const { passed: reached, pass } = signpost();
      const validate = () => (pass(), new Promise(() => {}));
      const jsonSchema = { input: () => ({ type: "object", properties: { n: { type: "integer" } } }) };
      return { reached, outputSchema: { "~standard": { version: 1, vendor: "own", jsonSchema, validate } } };
    };
    const late = await rejection(agent.call("go", { ...slot, outputSchema: silent().outputSchema }));
    assert.deepEqual([late.code, late.message], ["OUTPUT_INVALID", "validate of the output schema did not finish within 100 ms"]);
    const one = silent();
    const stopped = patient.stream("go", { ...slot, outputSchema: one.outputSchema });
    await one.reached;
    stopped.stop();
    assert.equal((await rejection(stopped.result)).code, "OUTPUT_INVALID");
    const two = silent();
    const controller = new AbortController();
    const aborted = patient.call("go", { ...slot, outputSchema: two.outputSchema, signal: controller.signal });
    await two.reached;
    controller.abort();
    assert.equal((await rejection(aborted)).code, "ABORTED");
    assert.equal((await patient.history(slot)).length, 4, "both turns are stored");
  },
);
