// One turn on the page: the question, the answer with its thinking and tool calls, and the actions.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Answer, Ask } from "lockgate";
import { ApprovalCard } from "./approval-card.tsx";
import type { Fork } from "../session/branches.ts";
import { Back, Forth } from "../controls/icons.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { MediaView } from "./media.tsx";
import type { Part } from "../session/part.ts";
import { ProblemBox } from "../controls/problem-box.tsx";
import { said } from "../text/conversation.ts";
import { timeOfDay } from "../controls/time.ts";
import { ToolCard } from "./tool-card.tsx";
import { lastId } from "../session/turn.ts";
import type { Turn } from "../session/turn.ts";

/** The actions of the user on a turn. */
export interface Deeds {
  readonly resend: (text?: string) => void;
  /** Sends a message again that was not stored. */
  readonly retry: (key: string) => void;
  readonly resume: () => void;
  readonly fork: (messageId: string) => void;
  readonly switchBranch: (branch: string) => void;
  readonly cancel: (key: string) => void;
  readonly answer: (answer: Answer) => void;
  /** Opens or closes the editor of the last question. */
  readonly edit: (open: boolean) => void;
}

export interface TurnProps {
  readonly turn: Turn;
  /** How many calls are ahead of it in the queue. */
  readonly nAhead: number;
  readonly isFirst: boolean;
  readonly canResend: boolean;
  readonly canResume: boolean;
  /** The text in the editor of the question; null if it is not edited. */
  readonly edited: string | null;
  readonly isSought: boolean;
  readonly fork: Fork | undefined;
  readonly asks: readonly Ask[];
  readonly evicted: ReadonlyMap<string, string>;
  readonly deeds: Deeds;
}

export function TurnView(props: TurnProps) {
  const { turn, nAhead, isFirst, canResend, canResume, edited, isSought, fork, asks, evicted } = props;
  // The same turn gives the same nodes, so finished turns are not drawn again while the last one streams.
  return useMemo(
    () => (
      <article
        class="turn"
        data-key={turn.key}
        data-progress={turn.progress === "sending" && nAhead ? "queued" : turn.progress}
        data-first={isFirst || undefined}
        data-sought={isSought || undefined}
      >
        {edited !== null ? <Editor {...props} /> : <Question turn={turn} />}
        <div class="answer">
          {turn.parts.map((part, index) => (
            <PartView key={index} part={part} {...props} />
          ))}
        </div>
        <Ending {...props} />
        {turn.progress === "ended" && turn.accepted && <Actions {...props} />}
      </article>
    ),
    [turn, nAhead, isFirst, canResend, canResume, edited, isSought, fork, asks, evicted],
  );
}

function Question({ turn }: { readonly turn: Turn }) {
  if (!turn.question && !turn.media.length) return null;
  return (
    <header class="question">
      <div>
        {turn.media.map((media, at) => (
          <MediaView key={at} media={media} />
        ))}
        {turn.question && <p dir="auto">{turn.question}</p>}
      </div>
      <time dateTime={turn.at}>{timeOfDay(turn.at)}</time>
    </header>
  );
}

function Editor({ edited, deeds }: TurnProps) {
  const [text, setText] = useState(edited ?? "");
  const field = useRef<HTMLTextAreaElement>(null);
  // A layout effect, so that a key pressed right after the first paint reaches the field.
  useLayoutEffect(() => field.current?.focus(), []);
  const ask = (event: Event) => {
    event.preventDefault();
    deeds.edit(false);
    if (text.trim()) deeds.resend(text.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) ask(event);
    if (event.key !== "Escape") return;
    event.stopPropagation();
    deeds.edit(false);
  };
  return (
    <form class="question editor" onSubmit={ask}>
      <textarea
        ref={field}
        dir="auto"
        rows={Math.min(8, text.split("\n").length)}
        aria-label={said.editQuestion}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <footer>
        <button type="button" class="plain" onClick={() => deeds.edit(false)}>
          {said.cancel}
        </button>
        <button type="submit" class="plain primary">
          {said.askAgain}
        </button>
      </footer>
    </form>
  );
}

function PartView({ part, turn, asks, evicted, deeds }: TurnProps & { readonly part: Part }) {
  switch (part.kind) {
    case "text":
      return <Markdown text={part.text} />;
    case "thinking":
      return (
        <details class="thinking">
          <summary>{turn.progress === "running" ? said.thinking : said.thought}</summary>
          <p dir="auto">{part.text}</p>
        </details>
      );
    case "tool": {
      const ask = asks.find(({ toolCallId }) => toolCallId === part.id);
      if (ask) return <ApprovalCard key={part.id} ask={ask} onAnswer={deeds.answer} />;
      return <ToolCard tool={part} evictedTo={evicted.get(part.resultId) ?? evicted.get(part.id) ?? ""} />;
    }
    case "media":
      return <MediaView media={part.media} />;
    case "note":
      return (
        <p class="note" dir="auto">
          {part.text}
        </p>
      );
  }
}

function Ending({ turn, nAhead, canResend, canResume, deeds }: TurnProps) {
  if (turn.problem) {
    const title = turn.accepted ? said.answerFailed : said.notSent;
    const again = turn.accepted ? canResend && (() => deeds.resend()) : () => deeds.retry(turn.key);
    return <ProblemBox title={title} problem={turn.problem} {...(again && { onRetry: again })} />;
  }
  if (turn.progress === "ended" && canResume) {
    return (
      <p class="note">
        {`${said.cutOff} `}
        <button type="button" class="plain" onClick={deeds.resume}>
          {said.goOn}
        </button>
      </p>
    );
  }
  const note = noteOf(turn, nAhead);
  if (!note) return null;
  return (
    <p class="note">
      {note}
      {!turn.accepted && nAhead > 0 && (
        <button type="button" class="link" onClick={() => deeds.cancel(turn.key)}>
          {said.takeBack}
        </button>
      )}
    </p>
  );
}

function noteOf(turn: Turn, nAhead: number): string {
  switch (turn.progress) {
    case "sending":
      return nAhead ? said.queued(nAhead) : said.sending;
    case "queued":
      return said.queued(nAhead);
    case "running":
      return turn.busy || (turn.parts.length ? "" : said.waiting);
    case "ended":
      return turn.reason ? said.endings[turn.reason] : "";
  }
}

function Actions({ turn, canResend, fork, asks, deeds, edited }: TurnProps) {
  return (
    <footer class="actions">
      {fork && <Ways fork={fork} onSwitch={deeds.switchBranch} />}
      {canResend && edited === null && (
        <>
          <button type="button" class="link" onClick={() => deeds.resend()}>
            {said.again}
          </button>
          <button type="button" class="link" onClick={() => deeds.edit(true)}>
            {said.edit}
          </button>
        </>
      )}
      {asks.length === 0 && (
        <button type="button" class="link late" onClick={() => deeds.fork(lastId(turn))}>
          {said.forkHere}
        </button>
      )}
    </footer>
  );
}

function Ways({ fork, onSwitch }: { readonly fork: Fork; readonly onSwitch: (branch: string) => void }) {
  const { ways, at } = fork;
  const step = (by: number, label: string, arrow: preact.JSX.Element) => (
    <button type="button" class="bare" aria-label={label} disabled={!ways[at + by]} onClick={() => onSwitch(ways[at + by] ?? "")}>
      {arrow}
    </button>
  );
  return (
    <span class="ways" role="group" aria-label={said.branchLabel(at + 1, ways.length)}>
      {step(-1, said.earlier, <Back />)}
      <span aria-hidden="true">{said.branch(at + 1, ways.length)}</span>
      {step(1, said.later, <Forth />)}
    </span>
  );
}
