// The session list, newest first. Only rows near the screen are in the page. Arrows move, Enter opens, Delete deletes.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SessionInfo } from "lockgate";
import { Dots } from "../controls/icons.tsx";
import { MenuButton } from "../controls/menu.tsx";
import type { MenuItem } from "../controls/menu.tsx";
import { addressOf } from "../app/route.ts";
import type { Sessions } from "./sessions.ts";
import { talk } from "../text/sessions.ts";
import { ago } from "../controls/time.ts";

/** A session as the list shows it. An empty session has no time. */
export type Row = Pick<
  SessionInfo,
  "sessionId" | "title" | "summary" | "updatedAt" | "running" | "asking" | "branches"
>;

export interface SessionListProps {
  readonly sessions: Sessions;
  readonly rows: readonly Row[];
  readonly openId: string;
  readonly onOpen: (sessionId: string) => void;
  readonly onDelete: (row: Row) => void;
  readonly itemsOf: (row: Row) => readonly MenuItem[];
}

/** The open session has a row from the start, stored or not. `openId` is empty if there is no such session. */
export function rowsOf(infos: readonly SessionInfo[], openId: string): readonly Row[] {
  const rows = infos.map((info) => ({
    ...info,
    title: info.title || talk.newSession,
    // The line shows plain text, so Markdown characters are removed.
    summary: info.summary.replace(/[`*#|]+/g, ""),
  }));
  if (!openId || rows.some((row) => row.sessionId === openId)) return rows;
  return [{ ...unsaid, sessionId: openId }, ...rows];
}

const unsaid: Row = {
  sessionId: "",
  title: talk.newSession,
  summary: "",
  updatedAt: "",
  running: false,
  asking: false,
  branches: 0,
};

/** The number of rows drawn above and below the visible ones. */
const margin = 12;

export function SessionList(props: SessionListProps) {
  const { sessions, rows, openId, onOpen, onDelete, itemsOf } = props;
  const { list, from, to, rowPx, focus } = useRows(rows.length);
  const nowMs = useNow();
  useEffect(() => {
    if (to >= rows.length - margin) void sessions.more();
  }, [sessions, to, rows.length]);
  const openAt = rows.findIndex((row) => row.sessionId === openId);
  const press = (event: KeyboardEvent, at: number, row: Row) => {
    const last = rows.length - 1;
    const targets = new Map([
      ["ArrowDown", Math.min(at + 1, last)],
      ["ArrowUp", Math.max(at - 1, 0)],
      ["Home", 0],
      ["End", last],
      ["Delete", Math.min(at, last - 1)],
    ]);
    const target = targets.get(event.key);
    if (target === undefined) return;
    event.preventDefault();
    if (event.key === "Delete") onDelete(row);
    focus(target);
  };
  return (
    <div class="roll" ref={list}>
      <ul
        class="sessions"
        aria-label={talk.sessions}
        aria-busy={!sessions.isListed}
        style={{ paddingTop: `${from * rowPx}px`, paddingBottom: `${(rows.length - to) * rowPx}px` }}
      >
      {rows.slice(from, to).map((row, offset) => {
        const at = from + offset;
        const isOpen = row.sessionId === openId;
        // Only one row is a tab stop. Arrow keys reach the others.
        const tabIndex = isOpen || (openAt < 0 && at === from) ? 0 : -1;
        return (
          <li
            key={row.sessionId}
            data-at={at}
            aria-setsize={rows.length}
            aria-posinset={at + 1}
            onKeyDown={(event) => press(event, at, row)}
          >
            <a
              href={addressOf(sessions.userId, row.sessionId)}
              aria-current={isOpen ? "page" : undefined}
              tabIndex={tabIndex}
              onClick={(event) => isPlain(event) && onOpen(row.sessionId)}
            >
              <span class="title" dir="auto">
                {row.title}
              </span>
              <span class="line" dir="auto">
                {row.summary}
              </span>
              <Facts row={row} running={sessions.isRunning(row)} nowMs={nowMs} />
            </a>
            {row.updatedAt && (
              <MenuButton label={talk.more(row.title)} items={itemsOf(row)} tabIndex={tabIndex}>
                <Dots />
              </MenuButton>
            )}
          </li>
        );
      })}
      </ul>
    </div>
  );
}

interface FactsProps {
  readonly row: Row;
  readonly running: boolean;
  readonly nowMs: number;
}

function Facts({ row, running, nowMs }: FactsProps) {
  return (
    <span class="facts">
      {running && (
        <span class="running">
          <span class="chamber" aria-hidden="true" />
          {talk.running}
        </span>
      )}
      {row.asking && !running && <span class="badge">{talk.asking}</span>}
      {row.updatedAt ? (
        <time dateTime={row.updatedAt}>{ago(row.updatedAt, nowMs)}</time>
      ) : (
        <span class="quiet">{talk.nothingSaid}</span>
      )}
      {row.branches > 0 && <span class="quiet">{talk.branches(row.branches)}</span>}
    </span>
  );
}

/** The rows near the screen, which all have the same height, and a function that focuses a row. */
function useRows(n: number) {
  const list = useRef<HTMLDivElement>(null);
  const [topPx, setTop] = useState(0);
  const [sizes, setSizes] = useState({ rowPx: 72, viewPx: 800 });
  const [wanted, focus] = useState<number | null>(null);
  const { rowPx, viewPx } = sizes;
  const from = Math.min(Math.max(0, Math.floor(topPx / rowPx) - margin), Math.max(0, n - 1));
  const to = Math.min(n, Math.ceil((topPx + viewPx) / rowPx) + margin);
  useLayoutEffect(() => {
    const box = list.current;
    if (!box) return;
    const measure = () => {
      const height = box.querySelector("li")?.getBoundingClientRect().height ?? rowPx;
      setSizes({ rowPx: height, viewPx: box.clientHeight });
    };
    const look = () => setTop(box.scrollTop);
    const watch = new ResizeObserver(() => requestAnimationFrame(measure));
    watch.observe(box);
    measure();
    box.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, []);
  useLayoutEffect(() => {
    const box = list.current;
    if (!box || wanted === null) return;
    const place = wanted * rowPx;
    if (place < box.scrollTop) box.scrollTop = place;
    else if (place + rowPx > box.scrollTop + box.clientHeight) box.scrollTop = place + rowPx - box.clientHeight;
    const link = box.querySelector<HTMLElement>(`[data-at="${wanted}"] a`);
    if (!link) return setTop(box.scrollTop);
    link.focus({ preventScroll: true });
    focus(null);
  });
  return { list, from, to, rowPx, focus };
}

function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(nowMs, Date.now());
}

/** Whether a click has no modifier key. With a modifier the browser opens the link in another tab or window. */
export function isPlain(event: MouseEvent): boolean {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}
