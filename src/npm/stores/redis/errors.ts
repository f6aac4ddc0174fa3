// Turns errors of Redis and of its clients into LockgateErrors.

import { LockgateError } from "../../errors.js";

/** Runs `work`, with errors of the client turned into LockgateErrors. */
export async function withTypedErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw LockgateError.isInstance(error) ? error : fromRedis(error);
  }
}

/**
 * Everything that happens while a server is away or replaced is STORE_UNAVAILABLE: the connection was lost, or the server answers
 * CLUSTERDOWN, MOVED, ASK, TRYAGAIN, READONLY, LOADING, MASTERDOWN or NOREPLICAS. The commit may have been applied, so the engine
 * reads the head to find out.
 */
function fromRedis(error: unknown): LockgateError {
  const message = messageOf(error);
  const failed = (code: ConstructorParameters<typeof LockgateError>[0], hint: string): LockgateError =>
    new LockgateError(code, `Redis failed: ${message}`, { hint, cause: error });
  const answer = /\b(CLUSTERDOWN|MOVED|ASK|TRYAGAIN|READONLY|LOADING|MASTERDOWN|NOREPLICAS|MISCONF)\b/.exec(message)?.[1];
  if (answer !== undefined) return failed("STORE_UNAVAILABLE", HINTS[answer] ?? "a server of the cluster is being replaced: try again");
  if (/\bOOM\b/.test(message)) return failed("STORE_QUOTA", "the server's maxmemory is used up: raise it");
  if (/WRONGTYPE/.test(message)) return failed("STORE_CORRUPT", "another program uses these keys: use a prefix that nothing else uses");
  if (/proto-max-bulk-len|invalid bulk length/.test(message)) return failed("STATE_TOO_LARGE", "raise the server's proto-max-bulk-len");
  if (/timed? ?out|ETIMEDOUT/i.test(message)) return failed("STORE_TIMEOUT", "check whether the server is overloaded");
  return failed("STORE_UNAVAILABLE", "check whether the server runs, accepts writes and can be reached");
}

const HINTS: Readonly<Record<string, string>> = {
  MOVED: "a server of the cluster is being replaced: try again. If it stays so, the client is one for a single server: use createCluster, or Cluster of ioredis",
  READONLY: "the server is a replica now: try again. If it stays so, connect to the master: use createSentinel, or sentinels of ioredis",
  LOADING: "the server has been restarted and reads its data: try again",
  MASTERDOWN: "the server is a replica without its master: try again",
  NOREPLICAS: "the server accepts writes only with replicas (min-replicas-to-write): start a replica, or try again when one is back",
  MISCONF: "the server cannot write to its disk, and accepts no writes: see its log",
};

/** The message of an error, with its code before it. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? `${(error as NodeJS.ErrnoException).code ?? ""} ${error.message}`.trim() : String(error);

/** The error for records that the server has lost. */
export function lost(partition: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `Redis has lost records of ${partition}`, {
    hint: "restore them from a backup, and set maxmemory-policy to noeviction so that the server evicts nothing",
  });
}

/** An answer as text. Clients may be configured to return bytes. */
export function text(answer: unknown): string | null {
  if (answer === null || answer === undefined) return null;
  return answer instanceof Uint8Array ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(answer) : String(answer);
}
