// The page that could not start: why, that nothing is lost, and what can be done.
import { look } from "./text/look.ts";
import type { Problem } from "./turn.ts";

export interface StartProblemProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
  /** Where it may be the settings: starts without them. */
  readonly onPlain?: () => void;
}

export function StartProblem({ problem, onRetry, onPlain }: StartProblemProps) {
  return (
    <div class="problem" role="alert">
      <strong>{look.start.failed}</strong>
      <p>{problem.message}</p>
      {problem.hint && <p class="quiet">{problem.hint}</p>}
      <p>{look.start.kept}</p>
      <div class="row">
        <button type="button" class="plain" onClick={onRetry}>
          {look.start.again}
        </button>
        {onPlain && (
          <button type="button" class="plain" onClick={onPlain}>
            {look.start.plain}
          </button>
        )}
      </div>
    </div>
  );
}
