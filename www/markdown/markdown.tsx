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
  return blocksOf(text).map(node);
}

/** While an answer grows, only its last block changes. The other blocks keep their nodes. */
function BlockView({ block }: { readonly block: Block }) {
  const same = JSON.stringify(block);
  // Blocks are parsed again with every delta, so they are compared by their JSON.
  return useMemo(() => <>{node(block)}</>, [same]);
}

function node(block: Block): ComponentChildren {
  switch (block.type) {
    case "paragraph":
      return <p>{inline(block.text)}</p>;
    case "heading":
      return heading(block.depth, inline(block.text));
    case "code":
      return <CodeBlock language={block.language} text={block.text} />;
    case "quote":
      return <blockquote>{block.blocks.map(node)}</blockquote>;
    case "rule":
      return <hr />;
    case "list":
      return list(block);
    case "table":
      return table(block);
  }
}

/** The page has its own h1 and h2, and an answer may begin with any depth. So all headings are h3 and differ only in style. */
function heading(depth: number, content: ComponentChildren): ComponentChildren {
  return <h3 data-depth={Math.min(depth, 3)}>{content}</h3>;
}

function list({ start, items, loose }: List): ComponentChildren {
  const shown = items.map(({ checked, blocks }) => (
    <li class={checked === null ? undefined : "task"}>
      {checked !== null && <input type="checkbox" disabled checked={checked} aria-label={said.task} />}
      {blocks.map((block) => (block.type === "paragraph" && !loose ? inline(block.text) : node(block)))}
    </li>
  ));
  return start === null ? <ul>{shown}</ul> : <ol start={start}>{shown}</ol>;
}

function table({ aligned, header, rows }: Table): ComponentChildren {
  const classOf = (at: number) => aligned[at] || undefined;
  return (
    <div class="table" tabIndex={0}>
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
