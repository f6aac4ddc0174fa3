// The left side: user, search, and the sessions or the search results. It is a drawer on a phone.
import type { RefObject } from "preact";
import { useRef } from "preact/hooks";
import type { Chat } from "../app/chat.ts";
import { Mark, Plus } from "../controls/icons.tsx";
import { Hits } from "../app/lazy.tsx";
import type { MenuItem } from "../controls/menu.tsx";
import { ProblemBox } from "../controls/problem-box.tsx";
import { SearchField } from "./search.tsx";
import { SessionList } from "./session-list.tsx";
import type { Row } from "./session-list.tsx";
import type { Sessions } from "./sessions.ts";
import { talk } from "../text/sessions.ts";
import { UserSwitch } from "./user-switch.tsx";

export interface DrawerProps {
  readonly chat: Chat;
  readonly userId: string | null;
  readonly sessions: Sessions;
  readonly rows: readonly Row[];
  readonly openId: string;
  readonly searchField: RefObject<HTMLInputElement | null>;
  readonly onNew: () => void;
  readonly onOpen: (sessionId: string, messageId?: string) => void;
  readonly onUser: (userId: string | null) => void;
  readonly onDelete: (row: Row) => void;
  readonly onFiles: (files: readonly File[]) => Promise<void>;
  readonly itemsOf: (row: Row) => readonly MenuItem[];
}

export function Drawer(props: DrawerProps) {
  const { chat, userId, sessions, searchField, onNew, onOpen, onUser, onFiles } = props;
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <nav class="side" aria-label={talk.sessions}>
      <header>
        <h1>
          <Mark /> Lockgate
        </h1>
        <UserSwitch userId={userId} users={chat.users} onSwitch={onUser} />
        <button type="button" class="plain" onClick={onNew}>
          <Plus /> {talk.newSession}
        </button>
        <SearchField sessions={sessions} field={searchField} />
      </header>
      {sessions.problem && (
        <ProblemBox problem={sessions.problem} onRetry={() => void sessions.refresh()} />
      )}
      {sessions.query ? (
        <Hits sessions={sessions} onOpen={(hit) => onOpen(hit.slot.sessionId, hit.messageId)} />
      ) : (
        <SessionList {...props} />
      )}
      <footer>
        <button type="button" class="link" onClick={() => chooser.current?.click()}>
          {talk.importFile}
        </button>
        <input
          ref={chooser}
          type="file"
          accept=".json,application/json"
          multiple
          hidden
          aria-label={talk.importFile}
          onChange={(event) => {
            const field = event.currentTarget;
            void onFiles([...(field.files ?? [])]).then(() => (field.value = ""));
          }}
        />
        <p class="legend">
          {talk.keys.map(([key, deed]) => (
            <span key={key}>
              <kbd>{key}</kbd> {deed}
            </span>
          ))}
        </p>
      </footer>
    </nav>
  );
}
