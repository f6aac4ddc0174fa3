// A box with a problem, its hint and a retry button.
import { page } from "../app/in-use.ts";
import { talk } from "../text/sessions.ts";
import type { Problem } from "../session/turn.ts";

export interface ProblemBoxProps {
  readonly title?: string;
  readonly problem: Problem;
  readonly onRetry?: () => void;
}

export function ProblemBox({ title, problem: given, onRetry }: ProblemBoxProps) {
  const problem = page.explain(given);
  const { openSettings } = page;
  return (
    <div class="problem" role="alert">
      {title && <strong>{title}</strong>}
      <p>{problem.message}</p>
      {problem.hint && <p class="quiet">{problem.hint}</p>}
      <div class="row">
        {onRetry && (
          <button type="button" class="plain" onClick={onRetry}>
            {talk.tryAgain}
          </button>
        )}
        {problem.isForSettings && openSettings && (
          <button type="button" class="plain" onClick={openSettings}>
            {talk.toSettings}
          </button>
        )}
      </div>
    </div>
  );
}
