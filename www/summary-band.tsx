// A summary in place of what it replaced for the model: open it, and what was said stands there again.
import { Markdown } from "./markdown.tsx";
import { talk } from "./text/talk.ts";

export interface SummaryBandProps {
  readonly text: string;
  readonly nMessages: number;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onUndo: () => void;
}

export function SummaryBand({ text, nMessages, isOpen, onToggle, onUndo }: SummaryBandProps) {
  return (
    <section class="band" data-key="band" aria-label={talk.summary(nMessages)}>
      <div>
        <header>
          <strong>{talk.summary(nMessages)}</strong>
          <button type="button" class="link" aria-expanded={isOpen} onClick={onToggle}>
            {isOpen ? talk.hideOriginals : talk.showOriginals}
          </button>
          <button type="button" class="link" onClick={onUndo}>
            {talk.undoSummary}
          </button>
        </header>
        <Markdown text={text} />
      </div>
    </section>
  );
}
