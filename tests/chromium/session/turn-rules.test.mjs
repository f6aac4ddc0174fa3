// The rules of turns in a page, on IndexedDB and on localStorage.
import { checkTurnRules, turnRules } from "../../npm/session/turn-rules.mjs";
import { story, within } from "../support/browser.mjs";

for (const kind of ["indexedDbStore", "localStorageStore"]) {
  story(`on ${kind}: rejected questions are left out, permissions kept, earlier questions answered again, and revised contexts undone`, async ({ page }) => {
    const seen = await within(page, `async (lockgate) => (${turnRules})(lockgate, lockgate.${kind}())`);
    checkTurnRules(seen);
  });
}
