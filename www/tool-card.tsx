// One tool call: what it was given, what it shows while it runs, and what came of it.
import { useState } from "preact/hooks";
import { Visible, jsonOf } from "./hidden-chars.tsx";
import { MediaView } from "./media.tsx";
import type { ToolPart } from "./part.ts";
import { said } from "./text/said.ts";

/** An input that fits is shown in one line. */
const oneLine = 72;

export function ToolCard({ tool, evictedTo }: { readonly tool: ToolPart; readonly evictedTo: string }) {
  const input = tool.input === undefined ? tool.draft : jsonOf(tool.input, oneLine);
  return (
    // A group and no landmark: a conversation has many, and several of one name.
    <div class="tool" role="group" data-state={tool.state} aria-label={said.tool(tool.name)}>
      <header>
        <code>
          <Visible text={tool.name} />
        </code>
        <span class="state">{said.states[tool.state]}</span>
      </header>
      {input && input !== "{}" && <Field name={said.input} text={input} />}
      {tool.output ? (
        <Output text={tool.output} evictedTo={evictedTo} />
      ) : (
        tool.live && <Field name={said.output} text={tool.live} live />
      )}
      {tool.media.map((media, at) => (
        <MediaView key={at} media={media} />
      ))}
    </div>
  );
}

export interface FieldProps {
  readonly name: string;
  readonly text: string;
  readonly live?: boolean;
}

export function Field({ name, text, live = false }: FieldProps) {
  return (
    <div class="field">
      <span>{name}</span>
      {/* Long output scrolls, and what scrolls must be reachable by keyboard. */}
      <pre tabIndex={isLong(text) ? 0 : undefined} data-live={live || undefined} dir="ltr">
        <Visible text={text} />
      </pre>
    </div>
  );
}

/** More than what is seen without scrolling, also on a phone. */
function isLong(text: string): boolean {
  return text.length > 240 || text.split("\n").length > 8;
}

/** How much of each end of an evicted result stands in the page until somebody wants it all. */
const endChars = 600;

function Output({ text, evictedTo }: { readonly text: string; readonly evictedTo: string }) {
  const [whole, setWhole] = useState(false);
  if (!evictedTo || text.length <= 2 * endChars) return <Field name={said.output} text={text} />;
  const ends = `${text.slice(0, endChars)}\n\n[…]\n\n${text.slice(-endChars)}`;
  return (
    <>
      <Field name={said.output} text={whole ? text : ends} />
      <p class="evicted">
        <span>{said.evicted(evictedTo)}</span>
        <button type="button" class="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? said.readLess : said.readWhole(text.length)}
        </button>
      </p>
    </>
  );
}
