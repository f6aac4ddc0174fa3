// What the page shows if it cannot start: the reason, that no session is lost, and what the user can do.
import { look } from "../text/start.ts";
import type { Problem } from "../session/turn.ts";

export interface StartProblemProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
  /** Starts with the default settings. Absent if the settings are the defaults. */
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
