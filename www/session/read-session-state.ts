// Reads the state of a session besides its messages. It is loaded with the turns that show it.
import type { Agent, SessionInfo, Slot } from "lockgate";
import { forksOf } from "./branches.ts";
import type { Insight } from "./session-state.ts";

/** How many messages of each branch are compared. */
const pathSize = 200;

export interface Source {
  readonly agent: Agent;
  readonly slot: Slot;
  readonly info: SessionInfo;
}

/** Reads all parts at once. If one read fails, the others still count. */
export async function readInsight(insight: Insight, source: Source): Promise<void> {
  const { agent, slot } = source;
  await Promise.allSettled([
    agent.asks(slot).then((asks) => (insight.asks = asks)),
    agent.getAgentState(slot).then((state) => {
      insight.tasks = state.tasks_context.tasks;
      insight.summary = state.summary;
      return insight.readPlan(state.plan_mode_context);
    }),
    readContext(insight, source),
    readForks(insight, source),
  ]);
}

async function readContext(insight: Insight, { agent, slot }: Source): Promise<void> {
  const { parts } = await agent.inspect(slot);
  const summary = parts.find(({ kind, replaces }) => kind === "summary" && replaces);
  insight.band = summary?.replaces
    ? { nMessages: summary.replaces.messages, last: summary.replaces.last }
    : null;
  const evicted = parts.filter(({ evictedTo, messageId }) => evictedTo && messageId);
  insight.evicted = new Map(evicted.map((part) => [part.messageId ?? "", part.evictedTo ?? ""]));
}

async function readForks(insight: Insight, { agent, slot, info }: Source): Promise<void> {
  const branches = info.branches > 0 ? await agent.branches(slot) : [];
  const paths = branches.map(async (branch) => {
    const messages = await agent.history(slot, { branch: branch.id, limit: pathSize });
    return { branch, messages, whole: messages.length < pathSize };
  });
  insight.forks = forksOf(await Promise.all(paths));
}
