// Markdown as nodes, from the parser's token tree: no text becomes HTML, and nothing is loaded.
import { lexer } from "marked";
import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { visible } from "./visible.tsx";

export function Markdown({ text }: { readonly text: string }) {
  return <div class="markdown">{useMemo(() => nodesOf(text), [text])}</div>;
}

export function nodesOf(text: string): ComponentChildren {
  return nodes(parse(text), 0);
}

/** Deeper than anyone writes; text made to nest further is shown as it stands. */
const maxDepth = 24;

function parse(text: string): readonly Token[] {
  try {
    return lexer(text);
  } catch {
    // The parser is recursive: text made to exhaust the stack is still text.
    return [{ type: "paragraph", raw: text, text }];
  }
}

function nodes(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => node(token, depth + 1));
}

/** What stands inside a token: its own tokens, or else its text. */
function inside(token: Token, depth: number): ComponentChildren {
  if ("tokens" in token && token.tokens) return nodes(token.tokens, depth);
  return "text" in token ? plain(String(token.text)) : token.raw;
}

function node(token: Token, depth: number): ComponentChildren {
  if (depth > maxDepth) return token.raw;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, depth);
    case "paragraph":
      return <p>{inside(token, depth)}</p>;
    case "blockquote":
      return <blockquote>{inside(token, depth)}</blockquote>;
    case "list":
      return list(token as Tokens.List, depth);
    case "table":
      return table(token as Tokens.Table, depth);
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{visible(token.text)}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "strong":
      return <strong>{inside(token, depth)}</strong>;
    case "em":
      return <em>{inside(token, depth)}</em>;
    case "del":
      return <del>{inside(token, depth)}</del>;
    case "codespan":
      return <code>{visible(token.text)}</code>;
    case "br":
      return <br />;
    case "escape":
      return token.text;
    case "link":
      return link(token.href, inside(token, depth));
    case "image":
      return link(token.href, token.text || token.href);
    case "checkbox":
      return (
        <input
          type="checkbox"
          disabled
          checked={(token as Tokens.Checkbox).checked}
          aria-label="task"
        />
      );
    case "text":
      return inside(token, depth);
    default:
      // Raw HTML, and whatever a later parser adds, is shown as it was written.
      return token.raw;
  }
}

/** The page has its own h1 and h2. */
function heading(token: Tokens.Heading, depth: number): ComponentChildren {
  const content = inside(token, depth);
  if (token.depth === 1) return <h3>{content}</h3>;
  if (token.depth === 2) return <h4>{content}</h4>;
  return <h5>{content}</h5>;
}

function list(token: Tokens.List, depth: number): ComponentChildren {
  const items = token.items.map((item) => <li>{inside(item, depth + 1)}</li>);
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, depth: number): ComponentChildren {
  const cells = (row: readonly Tokens.TableCell[]) =>
    row.map((cell) => <td class={cell.align ?? undefined}>{nodes(cell.tokens, depth)}</td>);
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {token.header.map((cell) => (
              <th class={cell.align ?? undefined}>{nodes(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>{cells(row)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function link(href: string, content: ComponentChildren): ComponentChildren {
  if (!isSafe(href)) return content;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {content}
    </a>
  );
}

function isSafe(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href).protocol);
  } catch {
    // A relative address would lead into this page.
    return false;
  }
}

const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  nbsp: "\u00a0",
};

/** The parser leaves character references to its HTML renderer, which is not used here. */
function plain(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|(\w{2,4}));/g,
    (whole: string, code?: string, name?: string) => {
      if (name) return named[name] ?? whole;
      const point = Number(code);
      return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : whole;
    },
  );
}
