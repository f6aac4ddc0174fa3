// Reading from the agent and changing something in it, with what went wrong on the way.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../turn.ts";
import type { Problem } from "../turn.ts";

export interface Reading<T> {
  /** What was read last; null until it has been once. */
  readonly value: T | null;
  readonly problem: Problem | null;
  readonly again: () => void;
}

/** Reads whenever one of `inputs` changes; an answer that comes after a later question is dropped. */
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
  /** Does something that answers with what was done. One thing at a time. */
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
