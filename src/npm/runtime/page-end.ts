// Stores what is new in running answers before a page goes away.

import type { EndGuard } from "./ending.js";

/**
 * The events after which a page may end without another one. When a page is left, the browser gives no time after `pagehide`, but
 * some between `beforeunload` and `pagehide`.
 */
const EVENTS = ["beforeunload", "pagehide", "visibilitychange"] as const;

/** Calls `checkpoint` when the page is hidden or goes away, while calls run. Undefined outside of pages. */
export function pageGuard(checkpoint: () => void): EndGuard | undefined {
  // Some servers have a `document` without events.
  if (typeof document === "undefined" || typeof addEventListener !== "function") return undefined;
  const leave = ({ type }: Event): void => {
    if (type !== "visibilitychange" || document.visibilityState === "hidden") checkpoint();
  };
  let nOpen = 0;
  return {
    processEnd: undefined,
    begun() {
      nOpen += 1;
      if (nOpen === 1) EVENTS.forEach((type) => addEventListener(type, leave, true));
    },
    ended() {
      nOpen -= 1;
      if (nOpen === 0) EVENTS.forEach((type) => removeEventListener(type, leave, true));
    },
  };
}
