// Where one writes: Enter sends, Shift+Enter makes a new line, Esc stops.
import type { RefObject } from "preact";
import { Send, Stop } from "./icons.tsx";

export interface ComposerProps {
  readonly draft: string;
  readonly running: boolean;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  readonly onWrite: (draft: string) => void;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function Composer({ draft, running, field, onWrite, onSend, onStop }: ComposerProps) {
  const text = draft.trim();
  const send = (event: Event) => {
    event.preventDefault();
    if (text) onSend(text);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method is open, Enter chooses a word.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return (
    <form class="composer" onSubmit={send}>
      <div class="box">
        <textarea
          ref={field}
          rows={Math.min(8, draft.split("\n").length)}
          aria-label="Message"
          placeholder={running ? "Say more; it waits its turn" : "Say something"}
          value={draft}
          onInput={(event) => onWrite(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {running && (
          <button type="button" class="round" aria-label="Stop" title="Stop (Esc)" onClick={onStop}>
            <Stop />
          </button>
        )}
        <button
          type="submit"
          class="round primary"
          aria-label="Send"
          title="Send (Enter)"
          disabled={!text}
        >
          <Send />
        </button>
      </div>
    </form>
  );
}
