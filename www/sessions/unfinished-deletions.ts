// Deletions that were begun and may be unfinished, kept in localStorage so that the next page finishes them.
import type { Slot } from "lockgate";

const key = "lockgate.leftovers";

export function leftovers(): readonly Slot[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isSlot) : [];
  } catch {
    // Storage is forbidden, so nothing was kept.
    return [];
  }
}

export function writeLeftover(slot: Slot): void {
  keep([...others(slot), slot]);
}

export function forgetLeftover(slot: Slot): void {
  keep(others(slot));
}

function others({ userId, sessionId }: Slot): readonly Slot[] {
  return leftovers().filter((one) => one.sessionId !== sessionId || one.userId !== userId);
}

function isSlot(value: unknown): value is Slot {
  if (typeof value !== "object" || value === null) return false;
  const { sessionId, userId } = value as Partial<Slot>;
  return typeof sessionId === "string" && (userId === null || typeof userId === "string");
}

function keep(slots: readonly Slot[]): void {
  try {
    if (slots.length) localStorage.setItem(key, JSON.stringify(slots));
    else localStorage.removeItem(key);
  } catch {
    // Storage is forbidden. The deletion itself still runs.
  }
}
