// A summary in place of the messages that it replaces for the model, or a note that they are left out. The user can show these
// messages.
import { Markdown } from "../markdown/markdown.tsx";
import { said } from "../text/conversation.ts";

export interface SummaryBandProps {
  /** The summary; "" if the messages are left out without one. */
  readonly text: string;
  readonly nMessages: number;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onUndo: () => void;
}

export function SummaryBand({ text, nMessages, isOpen, onToggle, onUndo }: SummaryBandProps) {
  const title = text === "" ? said.leftOut(nMessages) : said.summary(nMessages);
  return (
    <section class="band" data-key="band" aria-label={title}>
      <div>
        <header>
          <strong>{title}</strong>
          <button type="button" class="link" aria-expanded={isOpen} onClick={onToggle}>
            {isOpen ? said.hideOriginals : said.showOriginals}
          </button>
          <button type="button" class="link" onClick={onUndo}>
            {text === "" ? said.undoLeftOut : said.undoSummary}
          </button>
        </header>
        <Markdown text={text} />
      </div>
    </section>
  );
}
