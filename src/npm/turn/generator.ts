// Tools that are generators: what they yield is shown while they run, and what they return is the result.

import type { ToolContext } from "../types.js";

/** How many values a generator may yield before others get a turn: a generator that never waits would block every timer. */
const AT_ONCE = 100;

type Yields = Iterator<unknown> | AsyncIterator<unknown>;

/** The result of a tool. If the tool is a generator, it runs to its end, or until `stopped`. Then its `return` is called, so that its `finally` runs. */
export async function returned(answer: unknown, { emit }: ToolContext, stopped: Promise<void>): Promise<unknown> {
  if (!isGenerator(answer)) return answer;
  let isStopped = false;
  const end = async (): Promise<void> => {
    isStopped = true;
    await answer.return?.();
  };
  // The generator is stopped already, so nothing could be done about an error of its cleanup.
  void stopped.then(end).catch(() => {});
  for (let n = 1; ; n += 1) {
    const { done, value } = await answer.next();
    if (done === true || isStopped) return done === true ? value : undefined;
    emit((await value) as string);
    if (n % AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** Whether a value is what a generator function returns: an async one, or a plain one. */
function isGenerator(value: unknown): value is Yields {
  if (typeof value !== "object" || value === null) return false;
  const { next, [Symbol.asyncIterator]: steps } = value as Partial<AsyncGenerator>;
  return typeof next === "function" && (typeof steps === "function" || Object.prototype.toString.call(value) === "[object Generator]");
}
