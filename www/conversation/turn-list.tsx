// The turns of the open session, as a virtual list.
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { Down } from "../controls/icons.tsx";
import { TurnView } from "./turn-view.tsx";
import type { Deeds } from "./turn-view.tsx";
import { ProblemBox } from "../controls/problem-box.tsx";
import { SummaryBand } from "./summary-band.tsx";
import type { Talk } from "../session/session.ts";
import { said } from "../text/conversation.ts";
import { talk as words } from "../text/sessions.ts";
import { isLive, lastId } from "../session/turn.ts";
import type { Turn } from "../session/turn.ts";
import { useWindow } from "../controls/virtual-list.ts";
import "../markdown/markdown.css";
import "./turn-list.css";

export interface TurnsProps {
  readonly talk: Talk;
  /** The message to bring to the top; empty for the end. */
  readonly sought: string;
  readonly deeds: Deeds;
}

const bandKey = "band";
/** The assumed height of a turn that was never drawn. */
const guessPx = 180;
const noAsks = [] as const;

export function Turns({ talk, sought, deeds }: TurnsProps) {
  const { turns, problem, insight } = talk;
  const [isOpen, setOpen, wasAtEnd] = useFold(insight.band?.last);
  const nCovered = covered(turns ?? [], insight.band?.last);
  const rows = useMemo(() => rowsOf(turns ?? [], nCovered, isOpen), [turns, nCovered, isOpen]);
  const keys = useMemo(() => rows.map((row) => (row === bandKey ? bandKey : row.key)), [rows]);
  const view = useWindow(keys, guessPx);
  wasAtEnd.current = view.isAtEnd;
  const isAtStart = view.from === 0 && (nCovered === null || isOpen);
  useSought(talk, sought, view.show, () => setOpen(true));
  const last = turns?.at(-1);
  const sent = last?.progress === "sending" ? last.key : "";
  // After sending a message the user wants to see the answer.
  useLayoutEffect(() => {
    if (sent) view.toEnd();
  }, [sent]);
  useEffect(() => {
    if (isAtStart && talk.hasOlder && talk.isRead) void talk.older();
  }, [isAtStart, talk, talk.hasOlder, turns]);

  const draw = (row: Turn | typeof bandKey, at: number) => {
    if (row === bandKey) {
      return (
        <SummaryBand
          key={bandKey}
          text={insight.summary}
          nMessages={insight.band?.nMessages ?? 0}
          isOpen={isOpen}
          onToggle={() => setOpen(!isOpen)}
          onUndo={() => void talk.undoCompaction()}
        />
      );
    }
    const isLast = row === last;
    return (
      <TurnView
        key={row.key}
        turn={row}
        nAhead={row.accepted ? 0 : nBefore(turns ?? [], row)}
        isFirst={at === 0}
        canResend={isLast && talk.canResend}
        canResume={isLast && talk.canResume}
        edited={isLast ? talk.edited : null}
        isSought={row.key === seekKey(turns, sought)}
        fork={insight.forks.get(row.key)}
        asks={isLast ? talk.asks : noAsks}
        evicted={insight.evicted}
        deeds={deeds}
      />
    );
  };
  return (
    <div class="scroller" ref={view.scroller}>
      {problem && (
        <ProblemBox title={words.unreadable} problem={problem} onRetry={() => void talk.reopen()} />
      )}
      {/* Scrolling adds and removes rows, so new answers are announced by the status line below instead. */}
      <div
        class="column"
        ref={view.column}
        role="log"
        aria-live="off"
        aria-label={words.conversation}
        aria-busy={talk.isRunning || !talk.isRead}
      >
        {rows.slice(view.from, view.to).map((row, at) => draw(row, view.from + at))}
      </div>
      <p class="unseen" role="status">
        {useSaidLater(lastAnswer(turns))}
      </p>
      {!view.isAtEnd && (
        <button type="button" class="round to-end" aria-label={said.toEnd} title={said.toEnd} onClick={view.toEnd}>
          <Down />
        </button>
      )}
    </div>
  );
}

/** The summary band replaces the turns that it covers. If it is open, all turns follow it. */
function rowsOf(turns: readonly Turn[], nCovered: number | null, isOpen: boolean): readonly (Turn | typeof bandKey)[] {
  if (nCovered === null) return turns;
  return [bandKey, ...turns.slice(isOpen ? 0 : nCovered)];
}

/** How many whole turns a summary replaces; null without a summary. A turn that is replaced only in part stays. */
function covered(turns: readonly Turn[], last: string | undefined): number | null {
  const at = last === undefined ? -1 : turns.findIndex(({ ids }) => ids.includes(last));
  const turn = turns[at];
  if (!turn) return null;
  return lastId(turn) === last ? at + 1 : at;
}

/** A new summary is folded, unless the user has scrolled up to read. */
function useFold(last: string | undefined) {
  const wasAtEnd = useRef(true);
  const fold = useRef<{ last: string | undefined; isOpen: boolean }>({ last: undefined, isOpen: false }).current;
  const [, draw] = useReducer((n: number) => n + 1, 0);
  if (fold.last !== last) [fold.last, fold.isOpen] = [last, !wasAtEnd.current];
  const setOpen = (isOpen: boolean) => {
    fold.isOpen = isOpen;
    draw(undefined);
  };
  return [fold.isOpen, setOpen, wasAtEnd] as const;
}

function nBefore(turns: readonly Turn[], turn: Turn): number {
  return turns.slice(0, turns.indexOf(turn)).filter(isLive).length;
}

/** The key of the turn that contains the message. */
function seekKey(turns: readonly Turn[] | null, sought: string): string {
  if (!sought || !turns) return "";
  return turns.find((turn) => turn.ids.includes(sought))?.key ?? "";
}

/** Scrolls to a message once. After that the user can scroll freely. */
function useSought(talk: Talk, sought: string, show: (key: string) => void, open: () => void): void {
  const shown = useRef("");
  const key = seekKey(talk.turns, sought);
  useEffect(() => {
    if (key && shown.current !== sought) {
      shown.current = sought;
      open();
      show(key);
    } else if (!key && sought && talk.hasOlder) void talk.older();
  }, [key, sought, talk.hasOlder, talk.turns?.length]);
}

/** The text after a delay of one render: a live region must exist before its text changes. */
function useSaidLater(text: string): string {
  const [said, say] = useState("");
  useEffect(() => say(text), [text]);
  return said;
}

/** The text for screen readers when an answer has ended. */
function lastAnswer(turns: readonly Turn[] | null): string {
  const last = turns?.at(-1);
  if (!last || isLive(last)) return "";
  const text = last.parts.findLast((part) => part.kind === "text");
  return text?.kind === "text" ? said.answered(text.text.slice(0, 400)) : "";
}
