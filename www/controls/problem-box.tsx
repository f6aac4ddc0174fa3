// A box with a problem, its hint and a retry button.
import { talk } from "../text/sessions.ts";
import type { Problem } from "../session/turn.ts";

export interface ProblemBoxProps {
  readonly title?: string;
  readonly problem: Problem;
  readonly onRetry?: () => void;
}

export function ProblemBox({ title, problem, onRetry }: ProblemBoxProps) {
  return (
    <div class="problem" role="alert">
      {title && <strong>{title}</strong>}
      <p>{problem.message}</p>
      {problem.hint && <p class="quiet">{problem.hint}</p>}
      {onRetry && (
        <button type="button" class="plain" onClick={onRetry}>
          {talk.tryAgain}
        </button>
      )}
    </div>
  );
}
