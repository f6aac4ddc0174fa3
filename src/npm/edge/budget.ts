// Ends a turn before it reaches the platform's limit of outgoing requests.

import type { Middleware } from "../types.js";

const ENOUGH = "This answer ends here: the turn has used up the requests that its host allows. Say \"go on\" for the rest.";

/** A middleware that counts the outgoing requests of a turn, and ends the turn at the limit. */
export function budget(most: number): Middleware {
  const spent = new Map<string, number>();
  const count = (callId: string): number => {
    const n = (spent.get(callId) ?? 0) + 1;
    spent.set(callId, n);
    return n;
  };
  return {
    name: "budget",
    beforeModel: (_, { callId }) => (count(callId) > most ? { stop: ENOUGH } : undefined),
    beforeTool: (_, { callId }) => (count(callId) > most ? { deny: "this turn may make no more requests" } : undefined),
    onEnd: (_, { callId }) => void spent.delete(callId),
  };
}
