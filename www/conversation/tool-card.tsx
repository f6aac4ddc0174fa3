// One tool call: its input, its live output and its result.
import { useState } from "preact/hooks";
import { Visible, jsonOf } from "../controls/hidden-chars.tsx";
import { MediaView } from "./media.tsx";
import type { ToolPart } from "../session/part.ts";
import { said } from "../text/conversation.ts";

/** An input of at most this many characters is shown in one line. */
const oneLine = 72;

export function ToolCard({ tool, evictedTo }: { readonly tool: ToolPart; readonly evictedTo: string }) {
  const input = tool.input === undefined ? tool.draft : jsonOf(tool.input, oneLine);
  return (
    // A group and not a landmark: a conversation has many tool calls, and several have the same name.
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
      {/* Long output scrolls, so it must be reachable by keyboard. */}
      <pre tabIndex={isLong(text) ? 0 : undefined} data-live={live || undefined} dir="ltr">
        <Visible text={text} />
      </pre>
    </div>
  );
}

/** Whether the text may have to scroll, on a phone or a larger screen. */
function isLong(text: string): boolean {
  return text.length > 240 || text.split("\n").length > 8;
}

/** How much of each end of an evicted result is shown until the user asks for the whole result. */
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
