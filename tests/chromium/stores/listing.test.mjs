// Ten thousand sessions in IndexedDB, listed by page. The test prints the time, but asserts nothing about it.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

story("ten thousand sessions in IndexedDB are listed by page", async ({ page }) => {
  const told = await within(page, async ({ createAgent, indexedDbStore, echo, replaced }) => {
    const store = indexedDbStore("app", { durability: "relaxed" });
    const agent = await createAgent({ name: "helper", model: echo(), store });
    await agent.append({ sessionId: "s0", userId: "alice" }, [{ role: "user", content: "hello" }]);
    const [line] = (await store.list("")).filter(({ key }) => key.includes("/index/"));
    const start = line.key.slice(0, line.key.indexOf("/index/") + 7);
    const info = JSON.parse(new TextDecoder().decode(line.value));
    for (let from = 1; from < 10_000; from += 1_000) {
      const put = Array.from({ length: Math.min(1_000, 10_000 - from) }, (_, index) => {
        const n = from + index;
        const value = new TextEncoder().encode(JSON.stringify({ ...info, key: undefined, check: undefined, sessionId: `s${n}` }));
        return { key: `${start}${String(n).padStart(13, "0")}.t.s${n}`, value };
      });
      await store.commit({ revision: `r${from}`, put, remove: [] });
    }
    let reads = 0;
    replaced(IDBObjectStore.prototype, "get", function (original) {
      reads += 1;
      return original();
    });
    const seen = new Set();
    const began = performance.now();
    for (let after; ; ) {
      const infos = await agent.listSessions("alice", { limit: 100, ...(after && { after }) });
      for (const { sessionId } of infos) seen.add(sessionId);
      if (infos.length < 100) break;
      after = infos.at(-1).cursor;
    }
    return { seen: seen.size, reads, ms: Math.round(performance.now() - began) };
  });
  assert.deepEqual([told.seen, told.reads], [10_000, 0]);
  console.log(`10,000 sessions in 100 pages: ${told.ms} ms`);
});
