// The inline parts of Markdown: emphasis, code, links, and maths, which is shown as it is written.
import type { ComponentChildren } from "preact";
import { visible } from "../controls/hidden-chars.tsx";

/** The longest emphasis or link. It limits the search for an end, which malicious text could make very slow. */
const maxSpan = 1000;
const maxDepth = 12;

const escapable = /[!-/:-@[-`{-~]/;
const webAddress = /^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/;

/** The nodes of a text. Neighbouring pieces of text are joined. */
export function inline(text: string, depth = 0): ComponentChildren[] {
  const nodes: ComponentChildren[] = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const found = depth < maxDepth ? readAt(text, at, depth) : null;
    if (!found) {
      plain += text[at];
      at += 1;
    } else {
      if (typeof found.node === "string") plain += found.node;
      else {
        flush();
        nodes.push(found.node);
      }
      at += found.n;
    }
  }
  flush();
  return nodes;
}

/** The node at a position, and how many characters it takes. */
interface Found {
  readonly node: ComponentChildren;
  readonly n: number;
}

function readAt(text: string, at: number, depth: number): Found | null {
  switch (text[at]) {
    case "\\":
      return readEscape(text, at);
    case "`":
      return readCode(text, at);
    case "$":
      return readMaths(text, at);
    case "&":
      return readReference(text, at);
    case "<":
      return readAngle(text, at);
    case "!":
      return text[at + 1] === "[" ? readLink(text, at + 1, depth, 1) : null;
    case "[":
      return readLink(text, at, depth, 0);
    case "*":
    case "_":
    case "~":
      return readEmphasis(text, at, depth);
    case "h":
      return readAddress(text, at);
    case " ":
      return / {2,}\n/y.test(text.slice(at, at + 40)) ? { node: <br />, n: text.indexOf("\n", at) - at + 1 } : null;
    default:
      return null;
  }
}

function readEscape(text: string, at: number): Found | null {
  const next = text[at + 1] ?? "";
  if (next === "\n") return { node: <br />, n: 2 };
  const close = next === "(" ? "\\)" : next === "[" ? "\\]" : "";
  const end = close ? text.slice(at, at + maxSpan).indexOf(close) : -1;
  if (end > 0) return { node: text.slice(at, at + end + 2), n: end + 2 };
  return escapable.test(next) ? { node: next, n: 2 } : null;
}

function readCode(text: string, at: number): Found | null {
  const ticks = /^`+/.exec(text.slice(at, at + maxSpan))?.[0] ?? "";
  const rest = text.slice(at + ticks.length, at + ticks.length + maxSpan * 4);
  const end = new RegExp(`(?<!\`)${ticks}(?!\`)`).exec(rest)?.index ?? -1;
  if (end < 0) return { node: ticks, n: ticks.length };
  const code = rest.slice(0, end).replaceAll("\n", " ");
  const isPadded = /^ .*\S.* $/.test(code);
  return {
    node: <code dir="ltr">{visible(isPadded ? code.slice(1, -1) : code)}</code>,
    n: end + ticks.length * 2,
  };
}

/** Nothing in a formula is emphasis. */
function readMaths(text: string, at: number): Found | null {
  const formula = /^(?:\$\$[^$]+\$\$|\$(?![\s\d])[^$\n]*[^\s$\\]\$(?!\d))/.exec(text.slice(at, at + maxSpan));
  return formula && { node: formula[0], n: formula[0].length };
}

function readAngle(text: string, at: number): Found | null {
  const href = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/.exec(text.slice(at, at + maxSpan));
  return href?.[1] ? { node: link(href[1], href[1]), n: href[0].length } : null;
}

function readAddress(text: string, at: number): Found | null {
  const before = text[at - 1] ?? " ";
  const href = /\w/.test(before) ? null : webAddress.exec(text.slice(at, at + maxSpan));
  return href && { node: link(href[0], href[0]), n: href[0].length };
}

/** `[text](address "title")`. An image (`sign` is 1) becomes a link too, and is never loaded. */
function readLink(text: string, at: number, depth: number, sign: 0 | 1): Found | null {
  const rest = text.slice(at, at + maxSpan * 2);
  const close = closing(rest);
  const target = close < 0 ? null : /^\(\s*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(rest.slice(close + 1));
  if (!target) return null;
  const [label, href] = [rest.slice(1, close), target[1] ?? target[2] ?? ""];
  const content = sign ? label || href : inline(label, depth + 1);
  return { node: link(href, content), n: sign + close + 1 + target[0].length };
}

/** The position of the bracket that closes the first one of the text; -1 if there is none. */
function closing(text: string): number {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") depth += 1;
    else if (text[at] === "]" && (depth -= 1) === 0) return at;
  }
  return -1;
}

function readEmphasis(text: string, at: number, depth: number): Found | null {
  const sign = text[at] ?? "";
  let n = 1;
  while (text[at + n] === sign) n += 1;
  const isInWord = sign === "_" && /\w/.test(text[at - 1] ?? " ");
  const opens = n <= 3 && (sign !== "~" || n === 2) && !isInWord && /\S/.test(text[at + n] ?? " ");
  const end = opens ? endOf(text.slice(at + n, at + n + maxSpan), sign, n) : -1;
  if (end < 0) return { node: sign.repeat(n), n };
  const inner = inline(text.slice(at + n, at + n + end), depth + 1);
  const node = sign === "~" ? <del>{inner}</del> : n === 1 ? <em>{inner}</em> : <strong>{n === 3 ? <em>{inner}</em> : inner}</strong>;
  return { node, n: n * 2 + end };
}

/** The position of the `n` signs that close an emphasis, outside of code; -1 if there are none. */
function endOf(text: string, sign: string, n: number): number {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "`") at += (readCode(text, at)?.n ?? 1) - 1;
    else if (text[at] === sign) {
      let run = 1;
      while (text[at + run] === sign) run += 1;
      const closes = /\S/.test(text[at - 1] ?? " ") && !(sign === "_" && /\w/.test(text[at + run] ?? " "));
      if (closes && run === n) return at;
      if (closes && run > n) return at + (run - n);
      at += run - 1;
    }
  }
  return -1;
}

function link(href: string, content: ComponentChildren): ComponentChildren {
  if (!isSafe(href)) return content;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {content}
    </a>
  );
}

export function isSafe(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href).protocol);
  } catch {
    // A relative address would lead into this page.
    return false;
  }
}

const named = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["nbsp", "\u00a0"],
]);

function readReference(text: string, at: number): Found | null {
  const [whole, code, name] = /^&(?:#(\d{1,7})|(\w{2,4}));/.exec(text.slice(at, at + 12)) ?? [];
  if (!whole) return null;
  const point = Number(code);
  const isPoint = code !== undefined && point > 0 && point <= 0x10ffff;
  return { node: isPoint ? String.fromCodePoint(point) : (named.get(name ?? "") ?? whole), n: whole.length };
}
