// Times as short text, relative to now.

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** "now", "5 min. ago", "yesterday"; a plain date once it is more than a week old. */
export function ago(at: string, nowMs: number): string {
  const passedMs = nowMs - Date.parse(at);
  if (Number.isNaN(passedMs)) return "";
  if (passedMs > 7 * 86_400_000)
    return new Date(at).toLocaleDateString("en", { day: "numeric", month: "short" });
  for (const [unit, ms] of units) {
    if (passedMs >= ms) return relative.format(-Math.floor(passedMs / ms), unit);
  }
  return "now";
}

/** "14:05" */
export function timeOfDay(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  return time.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}
