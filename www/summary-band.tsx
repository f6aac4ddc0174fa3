// A summary in place of what it replaced for the model: open it, and what was said stands there again.
import { Markdown } from "./markdown.tsx";
import { said } from "./text/said.ts";

export interface SummaryBandProps {
  readonly text: string;
  readonly nMessages: number;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onUndo: () => void;
}

export function SummaryBand({ text, nMessages, isOpen, onToggle, onUndo }: SummaryBandProps) {
  return (
    <section class="band" data-key="band" aria-label={said.summary(nMessages)}>
      <div>
        <header>
          <strong>{said.summary(nMessages)}</strong>
          <button type="button" class="link" aria-expanded={isOpen} onClick={onToggle}>
            {isOpen ? said.hideOriginals : said.showOriginals}
          </button>
          <button type="button" class="link" onClick={onUndo}>
            {said.undoSummary}
          </button>
        </header>
        <Markdown text={text} />
      </div>
    </section>
  );
}
