// What came of a deed, said where it was done and to those who listen.
import { ProblemBox } from "../problem-box.tsx";
import type { Deed } from "./reading.ts";

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
