// The turns of the open session as they grow, of which only those near the screen are in the page.
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { Down } from "./icons.tsx";
import { TurnView } from "./message.tsx";
import type { Deeds } from "./message.tsx";
import { ProblemBox } from "./problem-box.tsx";
import { SummaryBand } from "./summary-band.tsx";
import type { Talk } from "./talk.ts";
import { said } from "./text/said.ts";
import { talk as words } from "./text/talk.ts";
import { isLive, lastId } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { useWindow } from "./window.ts";
import "./markdown.css";
import "./turns.css";

export interface TurnsProps {
  readonly talk: Talk;
  /** The message to bring to the top; empty for the end. */
  readonly sought: string;
  readonly isEdited: boolean;
  readonly deeds: Deeds;
}

const bandKey = "band";
/** The height of a turn that was never drawn. */
const guessPx = 180;
const noAsks = [] as const;

export function Turns({ talk, sought, isEdited, deeds }: TurnsProps) {
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
  // Whoever says something wants to see what comes of it.
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
        isEdited={isLast && isEdited}
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
      {/* Rows come and go as one scrolls: what is new is told by the line at the end instead. */}
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

/** The band stands where the turns were that it covers; open, they follow it. */
function rowsOf(turns: readonly Turn[], nCovered: number | null, isOpen: boolean): readonly (Turn | typeof bandKey)[] {
  if (nCovered === null) return turns;
  return [bandKey, ...turns.slice(isOpen ? 0 : nCovered)];
}

/** How many turns a summary stands for whole; null where there is none. One that it cuts through stays. */
function covered(turns: readonly Turn[], last: string | undefined): number | null {
  const at = last === undefined ? -1 : turns.findIndex(({ ids }) => ids.includes(last));
  const turn = turns[at];
  if (!turn) return null;
  return lastId(turn) === last ? at + 1 : at;
}

/** A new summary is folded, but never over what somebody is reading. */
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

/** A search names a message, which may stand anywhere in its turn. */
function seekKey(turns: readonly Turn[] | null, sought: string): string {
  if (!sought || !turns) return "";
  return turns.find((turn) => turn.ids.includes(sought))?.key ?? "";
}

/** Leads to a message once: whoever goes on from there is not called back. */
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

/** A live region must be there before it has something to say. */
function useSaidLater(text: string): string {
  const [said, say] = useState("");
  useEffect(() => say(text), [text]);
  return said;
}

/** What a screen reader says when an answer has ended. */
function lastAnswer(turns: readonly Turn[] | null): string {
  const last = turns?.at(-1);
  if (!last || isLive(last)) return "";
  const text = last.parts.findLast((part) => part.kind === "text");
  return text?.kind === "text" ? said.answered(text.text.slice(0, 400)) : "";
}
