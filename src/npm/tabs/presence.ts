// Whether a tab that runs calls is still there. Nothing is asked while its events arrive.
//
// A tab holds a lock of its own while it runs calls. The lock of the session would not do: a frozen follower that gets it
// would keep it from others.

import { pings } from "../host/lock-probe.js";
import { webLocks } from "../host/locks.js";

/** A tab is asked whether it still responds if it has sent nothing for this long. */
const QUIET_MS = 5_000;

/** How long the last events of a tab may take to arrive after its lock is free. */
const LAST_EVENTS_MS = 1_000;

/** Tells other tabs that this tab is there, until the returned function is called. */
export function announce(name: string): () => void {
  const silence = pings.answer(name);
  const over = new AbortController();
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  // A refused or withdrawn request changes nothing: then only the answers to questions tell that this tab is there.
  webLocks()?.request(name, { signal: over.signal }, () => left).catch(() => {});
  return () => {
    silence();
    leave();
    over.abort();
  };
}

/** Calls `gone` once if the tab is gone or does not respond. `heardAt` is when its last event arrived. */
export function watch(name: string, heardAt: () => number, gone: () => void): () => void {
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopAsking = (): void => {};
  const end = (): void => {
    over.abort();
    clearTimeout(timer);
    stopAsking();
  };
  const lost = (): void => {
    if (over.signal.aborted) return;
    end();
    gone();
  };
  const rest = (since: number): void => {
    timer = setTimeout(() => {
      if (Date.now() - heardAt() < QUIET_MS) return rest(heardAt());
      stopAsking = pings.listen(name, {
        since: Math.max(since, heardAt()),
        silent: lost,
        heard: () => {
          stopAsking();
          rest(Date.now());
        },
      });
    }, Math.max(since + QUIET_MS - Date.now(), 0));
  };
  rest(Date.now());
  void whenFree(name, over.signal).then(lost, () => {});
  return end;
}

/** Resolves when nobody holds the lock any more. Rejects if the signal fires, or without Web Locks. */
async function whenFree(name: string, signal: AbortSignal): Promise<void> {
  const locks = webLocks();
  if (locks === undefined) throw new Error("no Web Locks");
  for (;;) {
    await locks.request(name, { signal }, () => {});
    await new Promise((resolve) => setTimeout(resolve, LAST_EVENTS_MS));
    signal.throwIfAborted();
    // The request may have come before that of the tab itself.
    const { held = [] } = await locks.query();
    if (!held.some((lock) => lock.name === name)) return;
  }
}
