// What went wrong and what can be done about it, where it went wrong.
import { talk } from "./text/talk.ts";
import type { Problem } from "./turn.ts";

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
