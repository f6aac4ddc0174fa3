// What the log does not tell: how turns of this browser ended, and which calls its pages may have left open.
import type { Reason, Slot } from "lockgate";

export interface Ending {
  readonly reason: Reason | null;
  readonly problem: { readonly message: string; readonly hint: string } | null;
}

const endingsKey = "lockgate.endings";
const openKey = "lockgate.open";
/** Marks are small; the oldest go first. */
const maxEndings = 400;

/** How the turn ended whose last message this is; nothing is known of turns that went well. */
export function endingOf(messageId: string): Partial<Ending> {
  return (endings ??= new Map(read<readonly [string, Ending]>(endingsKey))).get(messageId) ?? {};
}

export function noteEnding(messageId: string, ending: Ending): void {
  const kept = read<readonly [string, Ending]>(endingsKey).filter(([id]) => id !== messageId);
  const all = [...kept, [messageId, ending] as const].slice(-maxEndings);
  write(endingsKey, all);
  endings = new Map(all);
}

/** A call begins: if its page goes before it ends, the next page knows where to look. */
export function noteOpen(slot: Slot): void {
  write(openKey, [...openSlots().filter((one) => one !== nameOf(slot)), nameOf(slot)]);
}

export function forgetOpen(slot: Slot): void {
  write(openKey, openSlots().filter((one) => one !== nameOf(slot)));
}

export function wasOpen(slot: Slot): boolean {
  return openSlots().includes(nameOf(slot));
}

let endings: Map<string, Ending> | undefined;

function openSlots(): readonly string[] {
  return read<string>(openKey);
}

function nameOf({ userId, sessionId }: Slot): string {
  return JSON.stringify([userId ?? null, sessionId]);
}

function read<T>(key: string): readonly T[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(stored) ? stored : [];
  } catch {
    // Where storage is forbidden nothing was noted.
    return [];
  }
}

function write(key: string, values: readonly unknown[]): void {
  try {
    if (values.length) localStorage.setItem(key, JSON.stringify(values));
    else localStorage.removeItem(key);
  } catch {
    // A mark that cannot be kept is missed only after a reload.
  }
}
