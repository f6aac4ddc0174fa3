// A virtual list: only rows near the screen are in the page, and visible rows do not jump. Written without a library.
import { useCallback, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** The rows to draw, and the elements that hold them. */
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

/** How many screens are drawn above and below the visible one. */
const margin = 1;
/** A position closer to the end than this counts as the end. */
const slackPx = 48;

interface Hold {
  readonly heights: Map<string, number>;
  /** The row that keeps its position on the screen, or null for the end of the list. */
  key: string | null;
  /** The index of that row. If the row is gone, the list stays near this index. */
  row: number;
  /** How far the list is scrolled past the top of that row. */
  pastPx: number;
  /** The last scroll position that was handled. */
  seenPx: number;
}

/** Rows of any height, in a scroller that keeps the position of the reader while rows grow, appear and disappear. */
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
      // Our own scrolling is not a decision of the reader.
      if (box.scrollTop === hold.seenPx) return;
      const leftPx = box.scrollHeight - box.scrollTop - box.clientHeight;
      // Scrolling up leaves the end at once, even by a small step.
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

/** The top of each row, and then the end of the last one. */
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
