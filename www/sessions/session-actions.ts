// The actions on a session in the list: rename, copy, export, delete, and undo the deletion.
import { useState } from "preact/hooks";
import type { Chat } from "../app/chat.ts";
import type { MenuItem } from "../controls/menu.tsx";
import type { Row } from "./session-list.tsx";
import { talk } from "../text/sessions.ts";

export interface SessionDeedsSetup {
  readonly chat: Chat;
  readonly userId: string | null;
  readonly rows: readonly Row[];
  readonly openId: string;
  readonly show: (sessionId: string) => void;
  readonly showNew: () => void;
}

export interface SessionDeeds {
  readonly itemsOf: (row: Row) => readonly MenuItem[];
  readonly remove: (row: Row) => void;
  readonly undo: () => void;
  /** The session that is being renamed. */
  readonly renamed: Row | null;
  readonly rename: (title: string | null) => void;
}

export function useSessionDeeds({ chat, userId, rows, openId, show, showNew }: SessionDeedsSetup): SessionDeeds {
  const [renamed, setRenamed] = useState<Row | null>(null);
  const slotOf = ({ sessionId }: Row) => ({ userId, sessionId });
  const remove = (row: Row) => {
    const wasOpen = row.sessionId === openId;
    const at = rows.indexOf(row);
    const next = rows[at + 1] ?? rows[at - 1];
    if (!next) showNew();
    else if (wasOpen) show(next.sessionId);
    // A session that was never stored need not be deleted.
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
