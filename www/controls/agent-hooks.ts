// Hooks that read from the agent or run an action, and keep the problem if one fails.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../session/turn.ts";
import type { Problem } from "../session/turn.ts";

export interface Reading<T> {
  /** The value that was read last; null before the first read. */
  readonly value: T | null;
  readonly problem: Problem | null;
  readonly again: () => void;
}

/** Reads when one of `inputs` changes. The answer of an older read is dropped. */
export function useReading<T>(read: () => Promise<T>, inputs: readonly unknown[]): Reading<T> {
  const [found, setFound] = useState<{ readonly value: T | null; readonly problem: Problem | null }>(
    { value: null, problem: null },
  );
  const [n, setN] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    read().then(
      (value) => isCurrent && setFound({ value, problem: null }),
      (error: unknown) => isCurrent && setFound(({ value }) => ({ value, problem: problemOf(error) })),
    );
    return () => {
      isCurrent = false;
    };
  }, [...inputs, n]);
  return { ...found, again: useCallback(() => setN((was) => was + 1), []) };
}

export interface Deed {
  readonly isBusy: boolean;
  readonly problem: Problem | null;
  /** What was done, in words. */
  readonly done: string;
  /** Runs an action that returns what was done. While one runs, others are ignored. */
  readonly run: (work: () => Promise<string | void>) => void;
}

export function useDeed(after: () => void = () => {}): Deed {
  const [state, setState] = useState<Omit<Deed, "run">>({ isBusy: false, problem: null, done: "" });
  const isBusy = useRef(false);
  const run = (work: () => Promise<string | void>) => {
    if (isBusy.current) return;
    isBusy.current = true;
    setState({ isBusy: true, problem: null, done: "" });
    work()
      .then(
        (done) => setState({ isBusy: false, problem: null, done: done ?? "" }),
        (error: unknown) => setState({ isBusy: false, problem: problemOf(error), done: "" }),
      )
      .finally(() => {
        isBusy.current = false;
        after();
      });
  };
  return { ...state, run };
}
