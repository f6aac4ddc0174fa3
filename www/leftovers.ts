// Deletions that were begun and perhaps not finished, written down for the next page to finish.

const key = "lockgate.leftovers";

export function leftovers(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(stored) ? stored.filter((id) => typeof id === "string") : [];
  } catch {
    // Where storage is forbidden there is nothing to finish either.
    return [];
  }
}

export function writeLeftover(sessionId: string): void {
  keep([...leftovers().filter((id) => id !== sessionId), sessionId]);
}

export function forgetLeftover(sessionId: string): void {
  keep(leftovers().filter((id) => id !== sessionId));
}

function keep(ids: readonly string[]): void {
  try {
    if (ids.length) localStorage.setItem(key, JSON.stringify(ids));
    else localStorage.removeItem(key);
  } catch {
    // Forbidden storage only loses the second chance; the deletion itself is under way.
  }
}
