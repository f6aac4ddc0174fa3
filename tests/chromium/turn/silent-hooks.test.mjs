// Hooks that never settle, in a page.
import { checkSilentHooks, silentHooks } from "../../npm/turn/silent-hooks.mjs";
import { story, within } from "../support/browser.mjs";

story("in a page: a hook that never settles fails its call at its deadline, and a stop, an abort, a deadline and a deletion end the call at once", async ({ page }) => {
  checkSilentHooks(await within(page, silentHooks));
});
