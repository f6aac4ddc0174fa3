// The session in the URL: `#/s/<session>` or `#/u/<user>/s/<session>`, with an optional `/m/<message>` at the end.
import { useLayoutEffect, useState } from "preact/hooks";

export interface Place {
  readonly userId: string | null;
  readonly sessionId: string;
  /** The message to show; empty for the end. */
  readonly messageId: string;
  /** Whether this page has made up the session's id, so that the store need not know it. */
  readonly isNew: boolean;
}

/** The state of history entries of new sessions. It stays when the page is loaded again. */
const isNew = "new";

export function addressOf(userId: string | null, sessionId: string, messageId = ""): string {
  const user = userId === null ? "" : `/u/${encodeURIComponent(userId)}`;
  const message = messageId && `/m/${encodeURIComponent(messageId)}`;
  return `#${user}/s/${encodeURIComponent(sessionId)}${message}`;
}

export function goToNew(userId: string | null): void {
  goTo(addressOf(userId, crypto.randomUUID()), isNew);
}

/** Changes the URL and draws at once. Setting the hash would fire its event only after keys that were pressed meanwhile. */
export function goTo(address: string, state: typeof isNew | null = null): void {
  if (location.hash === address) return;
  history.pushState(state, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The place in the URL. A URL without a place becomes the URL of a new session. */
export function usePlace(): Place {
  const [place, setPlace] = useState(readOrMint);
  useLayoutEffect(() => {
    const follow = () => setPlace(readOrMint());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return place;
}

function readOrMint(): Place {
  const found = read();
  if (found) return found;
  const sessionId = crypto.randomUUID();
  history.replaceState(isNew, "", addressOf(null, sessionId));
  return { userId: null, sessionId, messageId: "", isNew: true };
}

function read(): Place | null {
  const [, user, session, message] =
    /^#(?:\/u\/([^/]+))?\/s\/([^/]+)(?:\/m\/([^/]+))?$/.exec(location.hash) ?? [];
  if (!session) return null;
  try {
    return {
      userId: user === undefined ? null : decodeURIComponent(user),
      sessionId: decodeURIComponent(session),
      messageId: decodeURIComponent(message ?? ""),
      isNew: history.state === isNew,
    };
  } catch {
    // The URL has an invalid percent-encoding.
    return null;
  }
}
