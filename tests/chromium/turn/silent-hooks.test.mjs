// Hooks that never settle, and tools that are generators, in a page.
import { checkGenerators, generators } from "../../npm/turn/generators.mjs";
import { checkSilentHooks, silentHooks } from "../../npm/turn/silent-hooks.mjs";
import { story, within } from "../support/browser.mjs";

story("in a page: a hook that never settles fails its call at its deadline, and a stop, an abort, a deadline and a deletion end the call at once", async ({ page }) => {
  checkSilentHooks(await within(page, silentHooks));
});

story("in a page: a generator as a tool shows what it yields and answers with what it returns, and its return is called at a stop and at its deadline", async ({ page }) => {
  checkGenerators(await within(page, generators));
});
