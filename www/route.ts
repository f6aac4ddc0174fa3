// Which session the address names: `#/s/<id>`, so that reload, back and bookmarks keep it.
import { useLayoutEffect, useState } from "preact/hooks";

export function addressOf(sessionId: string): string {
  return `#/s/${encodeURIComponent(sessionId)}`;
}

/** Opens a session at once: setting the hash would tell us only after the keys that were pressed meanwhile. */
export function goTo(sessionId: string): void {
  const address = addressOf(sessionId);
  if (location.hash === address) return;
  history.pushState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The session in the address; an address without one becomes that of a new session. */
export function useSessionId(): string {
  const [sessionId, setSessionId] = useState(readOrMint);
  useLayoutEffect(() => {
    const follow = () => setSessionId(readOrMint());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return sessionId;
}

function readOrMint(): string {
  const found = read();
  if (found) return found;
  const minted = crypto.randomUUID();
  history.replaceState(null, "", addressOf(minted));
  return minted;
}

function read(): string {
  try {
    return decodeURIComponent(/^#\/s\/(.+)$/.exec(location.hash)?.[1] ?? "");
  } catch {
    // A broken escape names no session.
    return "";
  }
}
