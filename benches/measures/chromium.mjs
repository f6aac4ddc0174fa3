// In a page of Chromium, over IndexedDB: a call on a short and on a long history, the list of sessions, and a search.
import { inPage } from "../chromium/browser.mjs";

export async function measure(name, { lengths, forMs, nSessions, nMessages }) {
  const found = {};
  for (const length of lengths) {
    const ms = await inPage((page) => page.evaluate(([...given]) => globalThis.bench.call(...given), [name, length, forMs]));
    found[`page.call.${length}`] = ms * 1_000;
  }
  if (name !== "lockgate") return found;
  const list = await inPage((page) => page.evaluate((n) => globalThis.bench.list(n), nSessions));
  const search = await inPage((page) => page.evaluate((n) => globalThis.bench.search(n), nMessages));
  return {
    ...found,
    "page.list.first": list.first,
    "page.list.all": list.all,
    "page.search": search.search,
    "page.scan": search.scan,
    "page.search.gain": search.scan / search.search,
    "page.indexing": search.indexing,
  };
}
