// Long lists without a library: only what is near the screen is in the page, and what is on it never jumps.
import { useCallback, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** The rows to draw, and where they stand. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly column: RefObject<HTMLDivElement | null>;
  /** Brings a row to the top. */
  readonly show: (key: string) => void;
  readonly toEnd: () => void;
  readonly isAtEnd: boolean;
}

/** Screens drawn beside the one that is seen. */
const margin = 1;
/** Nearer than this to the end is at the end. */
const slackPx = 48;

interface Hold {
  readonly heights: Map<string, number>;
  /** What the eye holds on to: the end, or a row and how far it has been scrolled past. */
  key: string | null;
  /** Where that row was: if it is gone, the eye stays about there. */
  row: number;
  pastPx: number;
  /** Where it stood last, by us or by the reader. */
  seenPx: number;
}

/** Rows of any height, in a scroller that stays where the reader is while rows grow, come and go. */
export function useWindow(keys: readonly string[], guessPx: number): Window {
  const scroller = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const hold = useRef<Hold>({ heights: new Map(), key: null, row: 0, pastPx: 0, seenPx: 0 }).current;
  const [nDrawn, draw] = useReducer((n: number) => n + 1, 0);
  const tops = useMemo(() => topsOf(keys, hold.heights, guessPx), [keys, nDrawn, guessPx]);
  const viewPx = scroller.current?.clientHeight ?? 800;
  const topPx = topOf(hold, keys, tops, viewPx);
  const from = rowAt(tops, topPx - margin * viewPx);
  const to = Math.min(keys.length, rowAt(tops, topPx + (1 + margin) * viewPx) + 1);

  useLayoutEffect(() => {
    const [box, rows] = [scroller.current, column.current];
    if (!box || !rows) return;
    const changed = measure(rows, hold.heights);
    const now = changed ? topsOf(keys, hold.heights, guessPx) : tops;
    rows.style.paddingTop = `${now[from] ?? 0}px`;
    rows.style.paddingBottom = `${(now[keys.length] ?? 0) - (now[to] ?? 0)}px`;
    const wanted = rows.offsetTop + topOf(hold, keys, now, box.clientHeight);
    const end = hold.key === null ? box.scrollHeight : wanted;
    if (Math.abs(box.scrollTop - end) > 1) {
      box.scrollTop = end;
      hold.seenPx = box.scrollTop;
    }
    if (changed) draw(undefined);
  });

  useLayoutEffect(() => {
    const [box, rows] = [scroller.current, column.current];
    if (!box || !rows) return;
    const watch = new ResizeObserver(() => requestAnimationFrame(() => draw(undefined)));
    watch.observe(box);
    watch.observe(rows);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const look = () => {
      // What we have done ourselves says nothing of the reader.
      if (box.scrollTop === hold.seenPx) return;
      const leftPx = box.scrollHeight - box.scrollTop - box.clientHeight;
      // Whoever scrolls up leaves the end at once, however small the step.
      const isEnd = leftPx <= 1 || (leftPx < slackPx && box.scrollTop >= hold.seenPx);
      hold.seenPx = box.scrollTop;
      const topPx = box.scrollTop - (column.current?.offsetTop ?? 0);
      const row = rowAt(tops, topPx);
      hold.key = isEnd ? null : (keys[row] ?? null);
      hold.row = row;
      hold.pastPx = topPx - (tops[row] ?? 0);
      draw(undefined);
    };
    box.addEventListener("scroll", look, { passive: true });
    return () => box.removeEventListener("scroll", look);
  }, [tops, keys]);

  const show = useCallback((key: string) => {
    [hold.key, hold.pastPx] = [key, -16];
    draw(undefined);
  }, []);
  const toEnd = useCallback(() => {
    hold.key = null;
    draw(undefined);
  }, []);
  return { from, to, scroller, column, show, toEnd, isAtEnd: hold.key === null };
}

/** Where each row begins, and at last where all end. */
function topsOf(keys: readonly string[], heights: ReadonlyMap<string, number>, guessPx: number): Float64Array {
  const tops = new Float64Array(keys.length + 1);
  keys.forEach((key, at) => (tops[at + 1] = (tops[at] ?? 0) + (heights.get(key) ?? guessPx)));
  return tops;
}

function topOf(hold: Hold, keys: readonly string[], tops: Float64Array, viewPx: number): number {
  if (hold.key === null) return Math.max(0, (tops[keys.length] ?? 0) - viewPx);
  const row = keys.indexOf(hold.key);
  if (row < 0) return tops[Math.min(hold.row, keys.length)] ?? 0;
  return (tops[row] ?? 0) + hold.pastPx;
}

/** The last row that begins at or above a place. */
function rowAt(tops: Float64Array, px: number): number {
  let [low, high] = [0, Math.max(0, tops.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((tops[middle] ?? 0) <= px) low = middle;
    else high = middle - 1;
  }
  return low;
}

function measure(rows: HTMLElement, heights: Map<string, number>): boolean {
  let changed = false;
  for (const row of rows.children) {
    const key = row instanceof HTMLElement ? row.dataset["key"] : undefined;
    if (key === undefined) continue;
    const height = row.getBoundingClientRect().height;
    if (Math.abs((heights.get(key) ?? -1) - height) < 0.5) continue;
    heights.set(key, height);
    changed = true;
  }
  return changed;
}
