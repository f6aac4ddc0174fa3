// Where a conversation parts into branches: which answers one question has, and which of them is shown.
import type { Branch, Msg } from "lockgate";

/** The ways on from one place of the current path, oldest first. */
export interface Fork {
  /** The branch behind each way; empty for the one that is shown. */
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

/** The forks of the current path, by the first message of the turn that they are shown at. */
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
    // Several branches may go this way: the newest stands for it, unless the current one is among them.
    const isBetter = !known || (known !== current && path.branch.createdAt > known.branch.createdAt);
    if (isBetter || path === current) ways.set(way, path);
  }
  const shown = [...ways.values()];
  return {
    ways: shown.map((path) => (path === current ? "" : path.branch.id)),
    at: shown.indexOf(current),
  };
}

/** What a path does behind a message: its question and the first word of its answer. */
function wayOn({ branch, messages, whole }: Path, before: string | undefined): string | null {
  const at = before === undefined ? 0 : messages.findIndex(({ id }) => id === before) + 1;
  const question = messages[at];
  if ((before === undefined ? !whole : at === 0) || !question) return null;
  return `${question.id} ${messages[at + 1]?.id ?? branch.id}`;
}

function isQuestion(message: Msg): boolean {
  return message.role === "user" && message.name !== "system";
}
