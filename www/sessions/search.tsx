// The field for a search in all sessions of a user.
import type { RefObject } from "preact";
import { Cross, Lens } from "../controls/icons.tsx";
import type { Sessions } from "./sessions.ts";
import { talk } from "../text/sessions.ts";

export interface SearchFieldProps {
  readonly sessions: Sessions;
  readonly field: RefObject<HTMLInputElement | null>;
}

export function SearchField({ sessions, field }: SearchFieldProps) {
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".hits a, .sessions a")?.focus();
    if (event.key !== "Escape" || !sessions.query) return;
    event.stopPropagation();
    sessions.search("");
  };
  return (
    <div class="search">
      <Lens />
      <input
        ref={field}
        type="search"
        dir="auto"
        aria-label={talk.search}
        placeholder={talk.search}
        value={sessions.query}
        onInput={(event) => sessions.search(event.currentTarget.value)}
        onKeyDown={press}
      />
      {sessions.query && (
        <button type="button" class="bare" aria-label={talk.clearSearch} onClick={() => sessions.search("")}>
          <Cross />
        </button>
      )}
    </div>
  );
}
