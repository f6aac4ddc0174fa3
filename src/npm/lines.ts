// All that a user has said, as lines.

import type { Agent } from "./types.js";

/** A user's sessions, one a line. */
export async function* linesOf(agent: Agent, userId: string | null): AsyncGenerator<string, undefined> {
  let after: string | undefined;
  for (;;) {
    const page = await agent.listSessions(userId, after === undefined ? {} : { after });
    for (const { sessionId } of page) yield `${await agent.exportSession({ userId, sessionId })}\n`;
    after = page.at(-1)?.cursor;
    if (after === undefined) return undefined;
  }
}
