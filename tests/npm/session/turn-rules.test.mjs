// The rules of turns in Node, on files and in memory, and in workerd.
import { test } from "node:test";
import { story } from "../support/project.mjs";
import { startWorker } from "../support/worker.mjs";
import { checkTurnRules, turnRules } from "./turn-rules.mjs";

for (const kind of ["memory", "files"]) {
  story(
    `on ${kind}: rejected questions are left out, permissions kept, earlier questions answered again, and revised contexts undone`,
    async (kit, { kind, rules }) => {
      const { turnRules, checkTurnRules } = await import(rules);
      const made = { memory: () => kit.memoryStore(), files: async () => (await import("lockgate/stores/node")).fileStore("kept") };
      checkTurnRules(await turnRules(await import("lockgate"), await made[kind]()));
    },
    { kind, rules: new URL("turn-rules.mjs", import.meta.url).href },
  );
}

test("in workerd: rejected questions are left out, permissions kept, earlier questions answered again, and revised contexts undone", async (context) => {
  const { miniflare } = await startWorker(`
    import * as lockgate from "lockgate";
    ${turnRules}
    export default { fetch: async () => Response.json(await turnRules(lockgate, lockgate.memoryStore())) };
  `);
  context.after(() => miniflare.dispose());
  checkTurnRules(await (await miniflare.dispatchFetch("http://x.test/")).json());
});
