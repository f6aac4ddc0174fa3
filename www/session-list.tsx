// The sessions, newest first: arrows move, Enter opens, Delete deletes.
import { useEffect, useState } from "preact/hooks";
import type { SessionInfo } from "lockgate";
import { Bin } from "./icons.tsx";
import { addressOf } from "./route.ts";
import { ago } from "./time.ts";

export interface Row {
  readonly sessionId: string;
  readonly title: string;
  /** Empty for a session that nothing was said in yet. */
  readonly updatedAt: string;
}

export interface SessionListProps {
  readonly rows: readonly Row[];
  readonly openId: string;
  readonly isListed: boolean;
  readonly isRunning: (sessionId: string) => boolean;
  readonly onOpen: (sessionId: string) => void;
  readonly onDelete: (row: Row) => void;
}

/** The open session has a row from the start, stored or not. */
export function rowsOf(sessions: readonly SessionInfo[], openId: string): readonly Row[] {
  const rows = sessions.map(({ sessionId, title, updatedAt }) => ({
    sessionId,
    title: title || "New session",
    updatedAt,
  }));
  if (rows.some((row) => row.sessionId === openId)) return rows;
  return [{ sessionId: openId, title: "New session", updatedAt: "" }, ...rows];
}

export function SessionList(props: SessionListProps) {
  const { rows, openId, isListed, isRunning, onOpen, onDelete } = props;
  const nowMs = useNow();
  return (
    <ul class="sessions" aria-label="Sessions" aria-busy={!isListed}>
      {rows.map((row) => {
        const isOpen = row.sessionId === openId;
        const running = isRunning(row.sessionId);
        // Only the open row is a tab stop; the arrows reach the others.
        const tabIndex = isOpen ? 0 : -1;
        return (
          <li key={row.sessionId} onKeyDown={(event) => move(event, () => onDelete(row))}>
            <a
              href={addressOf(row.sessionId)}
              aria-current={isOpen ? "page" : undefined}
              tabIndex={tabIndex}
              onClick={(event) => isPlain(event) && onOpen(row.sessionId)}
            >
              <span class="title">{row.title}</span>
              {running ? <Running /> : <Updated at={row.updatedAt} nowMs={nowMs} />}
            </a>
            <button
              type="button"
              class="bare"
              aria-label={`Delete ${row.title}`}
              tabIndex={tabIndex}
              onClick={() => onDelete(row)}
            >
              <Bin />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Running() {
  return (
    <span class="running">
      <span class="chamber" aria-hidden="true" />
      running
    </span>
  );
}

function Updated({ at, nowMs }: { readonly at: string; readonly nowMs: number }) {
  if (!at) return <span class="quiet">nothing said yet</span>;
  return <time dateTime={at}>{ago(at, nowMs)}</time>;
}

function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(nowMs, Date.now());
}

function move(
  event: KeyboardEvent & { readonly currentTarget: HTMLLIElement },
  onDelete: () => void,
): void {
  const item = event.currentTarget;
  const siblings = [...(item.parentElement?.children ?? [])];
  const at = siblings.indexOf(item);
  const targets: Readonly<Record<string, Element | undefined>> = {
    ArrowDown: siblings[at + 1] ?? item,
    ArrowUp: siblings[at - 1] ?? item,
    Home: siblings[0],
    End: siblings.at(-1),
    Delete: siblings[at + 1] ?? siblings[at - 1],
  };
  if (!(event.key in targets)) return;
  event.preventDefault();
  targets[event.key]?.querySelector("a")?.focus();
  if (event.key === "Delete") onDelete();
}

/** With a modifier the link opens elsewhere, as links do. */
function isPlain(event: MouseEvent): boolean {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}
