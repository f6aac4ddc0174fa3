// What can be done with a listed session: rename, copy, export, delete and undo that.
import { useState } from "preact/hooks";
import type { Chat } from "./chat.ts";
import type { MenuItem } from "./menu.tsx";
import type { Row } from "./session-list.tsx";
import { talk } from "./text/talk.ts";

export interface SessionDeedsSetup {
  readonly chat: Chat;
  readonly userId: string | null;
  readonly rows: readonly Row[];
  readonly openId: string;
  readonly show: (sessionId: string) => void;
}

export interface SessionDeeds {
  readonly itemsOf: (row: Row) => readonly MenuItem[];
  readonly remove: (row: Row) => void;
  readonly undo: () => void;
  /** The session that is being given another title. */
  readonly renamed: Row | null;
  readonly rename: (title: string | null) => void;
}

export function useSessionDeeds({ chat, userId, rows, openId, show }: SessionDeedsSetup): SessionDeeds {
  const [renamed, setRenamed] = useState<Row | null>(null);
  const slotOf = ({ sessionId }: Row) => ({ userId, sessionId });
  const remove = (row: Row) => {
    const wasOpen = row.sessionId === openId;
    const at = rows.indexOf(row);
    const next = rows[at + 1] ?? rows[at - 1];
    if (wasOpen || !next) show(next?.sessionId ?? crypto.randomUUID());
    // What was never stored has nothing to undo.
    if (row.updatedAt) chat.remove({ slot: slotOf(row), title: row.title, wasOpen });
  };
  return {
    renamed,
    remove,
    undo: () => {
      const { removal } = chat;
      chat.keep();
      if (removal?.wasOpen) show(removal.slot.sessionId);
    },
    rename: (title) => {
      if (renamed && title) void chat.rename(slotOf(renamed), title);
      setRenamed(null);
    },
    itemsOf: (row) => [
      { label: talk.rename, run: () => setRenamed(row) },
      { label: talk.fork, run: () => void chat.fork(slotOf(row)).then((id) => id && show(id)) },
      ...(["lockgate", "agentscope", "markdown"] as const).map((format) => ({
        label: talk.exportAs[format],
        run: () => void chat.export(slotOf(row), row.title, format),
      })),
      { label: talk.remove, run: () => remove(row) },
    ],
  };
}
