// Finds the forks of a conversation: the branches that start at the same message, and which of them is shown.
import type { Branch, Msg } from "lockgate";

/** A fork: the branches that continue from one message of the current path, oldest first. */
export interface Fork {
  /** The id of the branch of each way; empty for the way that is shown. */
  readonly ways: readonly string[];
  readonly at: number;
}

/** A branch and the newest messages of its path, oldest first. */
export interface Path {
  readonly branch: Branch;
  readonly messages: readonly Msg[];
  /** Whether its first message is the first of the session. */
  readonly whole: boolean;
}

/** The forks of the current path, by the id of the first message of their turn. */
export function forksOf(paths: readonly Path[]): ReadonlyMap<string, Fork> {
  const forks = new Map<string, Fork>();
  const current = paths.find(({ branch }) => branch.current);
  if (!current) return forks;
  current.messages.forEach((message, at) => {
    if (!isQuestion(message) || (at === 0 && !current.whole)) return;
    const before = current.messages[at - 1]?.id;
    const fork = forkBehind(before, current, paths);
    if (fork.ways.length > 1) forks.set(message.id, fork);
  });
  return forks;
}

function forkBehind(before: string | undefined, current: Path, paths: readonly Path[]): Fork {
  const ways = new Map<string, Path>();
  for (const path of paths) {
    const way = wayOn(path, before);
    if (way === null) continue;
    const known = ways.get(way);
    // Several branches may start with this way: the newest is used, unless the current one is among them.
    const isBetter = !known || (known !== current && path.branch.createdAt > known.branch.createdAt);
    if (isBetter || path === current) ways.set(way, path);
  }
  const shown = [...ways.values()];
  return {
    ways: shown.map((path) => (path === current ? "" : path.branch.id)),
    at: shown.indexOf(current),
  };
}

/** Identifies how a path continues after a message: by the ids of its next two messages. Null if it does not continue. */
function wayOn({ branch, messages, whole }: Path, before: string | undefined): string | null {
  const at = before === undefined ? 0 : messages.findIndex(({ id }) => id === before) + 1;
  const question = messages[at];
  if ((before === undefined ? !whole : at === 0) || !question) return null;
  return `${question.id} ${messages[at + 1]?.id ?? branch.id}`;
}

function isQuestion(message: Msg): boolean {
  return message.role === "user" && message.name !== "system";
}
