// Shows Markdown as nodes. Text never becomes HTML, and nothing is loaded.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { blocksOf } from "./blocks.ts";
import type { Block, List, Table } from "./blocks.ts";
import { CodeBlock } from "./code-block.tsx";
import { inline } from "./inline.tsx";
import { said } from "../text/conversation.ts";

export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div class="markdown">
      {blocks.map((block, at) => (
        <BlockView key={at} block={block} />
      ))}
    </div>
  );
}

export function nodesOf(text: string): ComponentChildren {
  return blocksOf(text).map((block) => node(block, "auto"));
}

/** While an answer grows, only its last block changes. The other blocks keep their nodes. */
function BlockView({ block }: { readonly block: Block }) {
  const same = JSON.stringify(block);
  // Blocks are parsed again with every delta, so they are compared by their JSON.
  return useMemo(() => <>{node(block, "auto")}</>, [same]);
}

/** The direction of a block. Outer blocks have their own, from their first letter; inner ones that of the block around them. */
type Direction = "auto" | undefined;

function node(block: Block, dir?: Direction): ComponentChildren {
  switch (block.type) {
    case "paragraph":
      return <p dir={dir}>{inline(block.text)}</p>;
    case "heading":
      return heading(block.depth, inline(block.text), dir);
    case "code":
      return <CodeBlock language={block.language} text={block.text} />;
    case "quote":
      return <blockquote dir={dir}>{block.blocks.map((inner) => node(inner))}</blockquote>;
    case "rule":
      return <hr />;
    case "list":
      return list(block, dir);
    case "table":
      return table(block, dir);
  }
}

/** The page has its own h1 and h2, and an answer may begin with any depth. So all headings are h3 and differ only in style. */
function heading(depth: number, content: ComponentChildren, dir: Direction): ComponentChildren {
  return (
    <h3 dir={dir} data-depth={Math.min(depth, 3)}>
      {content}
    </h3>
  );
}

function list({ start, items, loose }: List, dir: Direction): ComponentChildren {
  const shown = items.map(({ checked, blocks }) => (
    <li class={checked === null ? undefined : "task"}>
      {checked !== null && <input type="checkbox" disabled checked={checked} aria-label={said.task} />}
      {blocks.map((block) => (block.type === "paragraph" && !loose ? inline(block.text) : node(block)))}
    </li>
  ));
  if (start === null) return <ul dir={dir}>{shown}</ul>;
  return (
    <ol dir={dir} start={start}>
      {shown}
    </ol>
  );
}

function table({ aligned, header, rows }: Table, dir: Direction): ComponentChildren {
  const classOf = (at: number) => aligned[at] || undefined;
  return (
    <div class="table" tabIndex={0} dir={dir}>
      <table>
        <thead>
          <tr>
            {header.map((cell, at) => (
              <th class={classOf(at)}>{inline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell, at) => (
                <td class={classOf(at)}>{inline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
