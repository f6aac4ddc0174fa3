// A long conversation under a small window, kept by a page in IndexedDB.
import { checkConversation, longConversation } from "../npm/window.mjs";
import { story, within } from "./browser.mjs";

const turns = 500;

story(`${turns} turns on IndexedDB stay within a window of 16,000 tokens, with nothing lost`, async ({ page }) => {
  const seen = await within(page, longConversation, { turns, store: "indexedDb", transcript: "/dist/entry/transcript-browser.js" });
  checkConversation(seen, { turns });
});
