// The open session: the welcome if it has no messages, else its turns.
import { Lost, Turns } from "../app/lazy.tsx";
import { ProblemBox } from "../controls/problem-box.tsx";
import { talk as words } from "../text/sessions.ts";
import type { TurnsProps } from "./turn-list.tsx";
import { Welcome } from "./welcome.tsx";

export interface ConversationProps extends TurnsProps {
  /** Whether the URL names a session that the store does not have. */
  readonly isLost: boolean;
  readonly onNew: () => void;
  readonly onExample: (prompt: string) => void;
}

export function ConversationView({ isLost, onNew, onExample, ...props }: ConversationProps) {
  const { turns, problem, isRead } = props.talk;
  if (turns?.length) return <Turns {...props} />;
  const empty = isLost ? <Lost onNew={onNew} /> : <Welcome onExample={onExample} />;
  const nothing = turns ? empty : <p class="reading quiet">{words.reading}</p>;
  const reopen = () => void props.talk.reopen();
  return (
    <div class="scroller">
      <div class="column" role="log" aria-live="off" aria-label={words.conversation} aria-busy={!isRead} />
      {problem ? <ProblemBox title={words.unreadable} problem={problem} onRetry={reopen} /> : nothing}
    </div>
  );
}
