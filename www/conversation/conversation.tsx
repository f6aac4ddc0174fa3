// The open session: the welcome if it has no messages, else its turns.
import { Turns } from "../app/lazy.tsx";
import { ProblemBox } from "../controls/problem-box.tsx";
import { talk as words } from "../text/sessions.ts";
import type { TurnsProps } from "./turn-list.tsx";
import { Welcome } from "./welcome.tsx";

export interface ConversationProps extends TurnsProps {
  readonly onExample: (prompt: string) => void;
}

export function ConversationView({ onExample, ...props }: ConversationProps) {
  const { turns, problem, isRead } = props.talk;
  if (turns?.length) return <Turns {...props} />;
  const nothing = turns ? <Welcome onExample={onExample} /> : <p class="reading quiet">{words.reading}</p>;
  const reopen = () => void props.talk.reopen();
  return (
    <div class="scroller">
      <div class="column" role="log" aria-live="off" aria-label={words.conversation} aria-busy={!isRead} />
      {problem ? <ProblemBox title={words.unreadable} problem={problem} onRetry={reopen} /> : nothing}
    </div>
  );
}
