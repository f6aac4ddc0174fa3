// One part of the next request: its first line, its tokens, its text, and the messages that it replaces.
import { useState } from "preact/hooks";
import { textOf } from "lockgate";
import type { Agent, ContextReport, Msg, Slot } from "lockgate";
import { inside } from "../text/inspect.ts";
import { Visible } from "../controls/hidden-chars.tsx";
import { Outcome } from "../controls/action-outcome.tsx";
import { useDeed } from "../controls/agent-hooks.ts";

export type Part = ContextReport["parts"][number];

const words = inside.context;

interface PartProps {
  readonly part: Part;
  readonly agent: Agent;
  readonly slot: Slot;
}

export function PartRow({ part, agent, slot }: PartProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li class="part">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class={`swatch part-${part.kind}`} />
          <span class="first">
            <Visible text={lineOf(part)} />
          </span>
          <b>{inside.common.count(part.tokens)}</b>
        </summary>
        {/* A folded part is not drawn, because most parts of a long context are folded. */}
        {isOpen && (
          <pre tabIndex={0} dir="auto">
            <Visible text={wholeOf(part)} />
          </pre>
        )}
      </details>
      <Behind {...{ part, agent, slot }} />
    </li>
  );
}

/** The messages that a summary replaces, or the whole result if only a part is shown. Both are read from the log. */
function Behind({ part, agent, slot }: PartProps) {
  const [text, setText] = useState<string | null>(null);
  const deed = useDeed();
  const { replaces, evictedTo, messageId } = part;
  if (!replaces && !evictedTo) return null;
  const read = async () => {
    const found = replaces
      ? between(await agent.history(slot, { limit: 100_000 }), replaces)
      : (await agent.history(slot, { limit: 100_000 })).filter(({ id }) => id === messageId);
    setText(found.map(shown).join("\n\n") || words.gone);
  };
  return (
    <div class="behind">
      <span class="quiet">
        {replaces ? words.stands(replaces.messages) : words.evicted(evictedTo ?? "")}
      </span>{" "}
      {text === null ? (
        <button type="button" class="link" onClick={() => deed.run(read)}>
          {replaces ? words.original : words.whole}
        </button>
      ) : (
        <pre tabIndex={0} aria-label={replaces ? words.original : words.whole}>
          <Visible text={text} />
        </pre>
      )}
      {deed.problem && <Outcome deed={deed} />}
    </div>
  );
}

function between(messages: readonly Msg[], ends: NonNullable<Part["replaces"]>): readonly Msg[] {
  const from = messages.findIndex(({ id }) => id === ends.first);
  const to = messages.findIndex(({ id }) => id === ends.last);
  return from < 0 || to < 0 ? [] : messages.slice(from, to + 1);
}

function shown(message: Msg): string {
  const blocks = message.content.map((block) => {
    if (block.type === "tool_use") return `${block.name} ${JSON.stringify(block.input)}`;
    if (block.type === "tool_result") return textOf(block.output);
    return textOf([block]);
  });
  return `${words.roles[message.role]}: ${blocks.filter(Boolean).join("\n")}`;
}

function lineOf({ kind, text }: Part): string {
  const names = kind === "tools" ? toolsIn(text).map(({ name }) => name) : [];
  if (names.length) return words.tools(names.length, names.join(", "));
  return text.trimStart().split("\n", 1)[0]?.slice(0, 200) || words.kinds[kind];
}

function wholeOf({ kind, text }: Part): string {
  const tools = kind === "tools" ? toolsIn(text) : [];
  return tools.length ? tools.map((tool) => JSON.stringify(tool, null, 2)).join("\n\n") : text;
}

/** The tools in the text of a part: a JSON list of their names and inputs. */
function toolsIn(text: string): readonly { readonly name?: unknown }[] {
  try {
    const tools: unknown = JSON.parse(text);
    return Array.isArray(tools) ? tools : [];
  } catch {
    return [];
  }
}
