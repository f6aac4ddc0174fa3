// Exports all sessions of a user as JSON lines.

import type { Agent } from "../types.js";

/** The sessions of a user, one per line. */
export async function* exportedSessions(agent: Agent, userId: string | null): AsyncGenerator<string, undefined> {
  let after: string | undefined;
  for (;;) {
    const page = await agent.listSessions(userId, after === undefined ? {} : { after });
    for (const { sessionId } of page) yield `${await agent.exportSession({ userId, sessionId })}\n`;
    after = page.at(-1)?.cursor;
    if (after === undefined) return undefined;
  }
}
