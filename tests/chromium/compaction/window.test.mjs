// A long conversation with a small context window, stored by a page in IndexedDB.
import { checkConversation, longConversation } from "../../npm/compaction/window.mjs";
import { story, within } from "../support/browser.mjs";

const turns = 500;

story(`${turns} turns on IndexedDB stay within a window of 16,000 tokens, with nothing lost`, async ({ page }) => {
  const seen = await within(page, longConversation, { turns, store: "indexedDb", transcript: "/dist/transcript/browser.js" });
  checkConversation(seen, { turns });
});
