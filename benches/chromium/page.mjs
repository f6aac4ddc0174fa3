// The measures that run inside a page. This file is bundled; the package is loaded unbundled from the same server.
import { createAgent, customModel, indexedDbStore } from "lockgate";
import * as ai from "../engines/ai-sdk.mjs";
import { IndexedDbBlobs } from "../engines/blob.mjs";
import * as hand from "../engines/hand.mjs";
import * as lockgate from "../engines/lockgate.mjs";
import { MESSAGES_PER_TURN, Script, answer, question } from "../script.mjs";
import { median, sample, timed } from "../stats.mjs";

const engines = { lockgate, hand, ai };
const relaxed = { durability: "relaxed" };

/** Milliseconds of a call on a session with `nMessages` messages in IndexedDB. */
export async function call(name, nMessages, forMs) {
  const script = new Script();
  const where = name === "lockgate" ? { appends: true, store: indexedDbStore(`calls-${nMessages}`, relaxed) } : { blobs: await IndexedDbBlobs.open(`calls-${nMessages}`) };
  const engine = await engines[name].create({ script, ...where });
  await sample((n) => engine.call(`warm-${n}`, question(n)), { atMost: 60, forMs });
  await engine.seed("long", nMessages);
  const times = await sample((n) => engine.call("long", question(n)), { atMost: 40, forMs });
  const { length } = await engine.messages("long");
  if (length !== nMessages + MESSAGES_PER_TURN * times.length) throw new Error(`${length} messages are kept`);
  return median(times);
}

const silent = customModel({
  id: "silent",
  async *generate() {
    yield { type: "text", text: answer };
  },
});

/** Milliseconds until the first hundred of `nSessions` sessions are listed, and until all are. */
export async function list(nSessions) {
  const agent = await createAgent({ name: "bench", model: silent, store: indexedDbStore("list", relaxed) });
  const atOnce = 100;
  for (let from = 0; from < nSessions; from += atOnce) {
    const one = (at) => agent.append({ userId: "u", sessionId: `s${from + at}` }, [{ role: "user", content: question(from + at) }]);
    await Promise.all(Array.from({ length: atOnce }, (_, at) => one(at)));
  }
  await agent.drain();
  const first = await timed(() => agent.listSessions("u", { limit: 100 }));
  let seen = 0;
  const all = await timed(async () => {
    for (let after; ; ) {
      const infos = await agent.listSessions("u", { limit: 100, ...(after && { after }) });
      seen += infos.length;
      if (infos.length < 100) break;
      after = infos.at(-1).cursor;
    }
  });
  if (seen !== nSessions) throw new Error(`${seen} sessions were listed of ${nSessions}`);
  return { first, all };
}

/** Milliseconds of a search for a word that a hundred of `nMessages` messages have, and of a scan of the same log. */
export async function search(nMessages) {
  const agent = await createAgent({ name: "bench", model: silent, store: indexedDbStore("search", relaxed) });
  const each = 1_000;
  const slots = Array.from({ length: nMessages / each }, (_, n) => ({ userId: "u", sessionId: `s${n}` }));
  const rare = Math.floor(nMessages / 100);
  const indexing = await timed(async () => {
    for (const [at, slot] of slots.entries()) {
      await agent.append(slot, Array.from({ length: each }, (_, n) => said(at * each + n, rare)));
    }
    await agent.drain();
  });
  let hits = 0;
  const searched = await sample(async () => (hits = (await agent.search("zeppelin", { userId: "u", limit: 10 })).length), { atMost: 9, forMs: 5_000 });
  let found = 0;
  const scanned = await timed(async () => {
    for (const slot of slots) found += (await agent.history(slot, { limit: each })).filter(({ content }) => content[0].text.includes("zeppelin")).length;
  });
  if (hits !== 10 || found !== 100) throw new Error(`${hits} of 10 were found by the search, ${found} of 100 by the scan`);
  return { search: median(searched), scan: scanned, indexing };
}

function said(n, rare) {
  const text = n % rare === 0 ? `zeppelin ${question(n)}` : question(n);
  return n % 2 === 0 ? { role: "user", content: text } : { role: "assistant", content: text };
}
