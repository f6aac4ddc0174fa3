// The outcome of an action, shown beside its button and announced to screen readers.
import { ProblemBox } from "./problem-box.tsx";
import type { Deed } from "./agent-hooks.ts";

export function Outcome({ deed }: { readonly deed: Deed }) {
  return (
    <>
      <p class="done" role="status">
        {deed.done}
      </p>
      {deed.problem && <ProblemBox problem={deed.problem} />}
    </>
  );
}
