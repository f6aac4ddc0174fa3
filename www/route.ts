// Which session the address names: `#/s/<id>`, so that reload, back and bookmarks keep it.
import { useEffect, useState } from "preact/hooks";

export function addressOf(sessionId: string): string {
  return `#/s/${encodeURIComponent(sessionId)}`;
}

export function goTo(sessionId: string): void {
  location.hash = addressOf(sessionId);
}

/** The session in the address; an address without one becomes that of a new session. */
export function useSessionId(): string {
  const [sessionId, setSessionId] = useState(readOrMint);
  useEffect(() => {
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
