// The results of a search in the sessions of a user, with the words marked.
import type { ComponentChildren } from "preact";
import { addressOf } from "../app/route.ts";
import { isPlain } from "./session-list.tsx";
import type { Found, Sessions } from "./sessions.ts";
import { said } from "../text/conversation.ts";
import { talk } from "../text/sessions.ts";
import { ago } from "../controls/time.ts";

export interface HitsProps {
  readonly sessions: Sessions;
  readonly onOpen: (hit: Found) => void;
}

export function Hits({ sessions, onOpen }: HitsProps) {
  const { found, query, userId } = sessions;
  const words = wordsOf(query);
  return (
    <>
      <p class="legend" role="status">
        {found ? said.found(found.length) : said.searching}
      </p>
      <ul class="hits" aria-label={talk.search} onKeyDown={move}>
        {found?.map((hit) => (
          <li key={`${hit.slot.sessionId} ${hit.messageId}`}>
            <a
              href={addressOf(userId, hit.slot.sessionId, hit.messageId)}
              onClick={(event) => isPlain(event) && onOpen(hit)}
            >
              <span class="title" dir="auto">
                {hit.title || talk.newSession}
              </span>
              <span class="excerpt" dir="auto">
                {marked(hit.excerpt, words)}
              </span>
              <span class="facts">
                <span class="quiet">{said.hitBy[hit.role]}</span>
                <time dateTime={hit.at}>{ago(hit.at, Date.now())}</time>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function wordsOf(query: string): readonly string[] {
  return folded(query).match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Marks the words of the query in the text. Accents are ignored. */
function marked(text: string, words: readonly string[]): ComponentChildren[] {
  return text.split(/([\p{L}\p{N}\p{M}]+)/u).map((piece) => {
    const plain = folded(piece);
    return plain && words.some((word) => plain.startsWith(word)) ? <mark>{piece}</mark> : piece;
  });
}

function folded(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

function move(event: KeyboardEvent): void {
  const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (!by) return;
  const links = [...document.querySelectorAll<HTMLElement>(".hits a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[at + by]?.focus();
  event.preventDefault();
}
