// Markdown's blocks, as models write them: paragraphs, headings, lists, quotes, tables and code.
//
// Written by hand because of the size: `marked`, of which we used only the lexer, adds 15 KB (gzip) to the page.

export type Block =
  | { readonly type: "paragraph"; readonly text: string }
  | { readonly type: "heading"; readonly depth: number; readonly text: string }
  | { readonly type: "code"; readonly language: string; readonly text: string }
  | { readonly type: "quote"; readonly blocks: readonly Block[] }
  | { readonly type: "rule" }
  | List
  | Table;

export interface List {
  readonly type: "list";
  /** The first number; null for bullets. */
  readonly start: number | null;
  readonly items: readonly Item[];
  /** Whether the list contains a blank line. Then its paragraphs have space between them. */
  readonly loose: boolean;
}

export interface Item {
  readonly checked: boolean | null;
  readonly blocks: readonly Block[];
}

export interface Table {
  readonly type: "table";
  readonly aligned: readonly string[];
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The deepest nesting of blocks. Deeper text, which is probably malicious, is shown unparsed. */
const maxDepth = 16;

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?:\s+(.*?))??(?:\s+#+)?\s*$/;
const rule = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const quote = /^ {0,3}> ?/;
const marker = /^( {0,3}(?:[-+*]|(\d{1,9})[.)]))(?: {1,4}(?=\S)| |$)/;
const delimiters = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const blank = /^\s*$/;

export function blocksOf(text: string): readonly Block[] {
  return read(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

function read(lines: readonly string[], depth: number): readonly Block[] {
  if (depth > maxDepth) return [{ type: "paragraph", text: lines.join("\n") }];
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (blank.test(line)) {
      at += 1;
      continue;
    }
    const [block, n] =
      readCode(lines, at) ??
      readLine(line) ??
      readQuote(lines, at, depth) ??
      readList(lines, at, depth) ??
      readTable(lines, at) ??
      readParagraph(lines, at);
    blocks.push(block);
    at += n;
  }
  return blocks;
}

/** A block, and how many lines it takes. */
type Read = readonly [block: Block, n: number];

function readCode(lines: readonly string[], from: number): Read | null {
  const open = fence.exec(lines[from] ?? "");
  if (open?.[1]) {
    const close = new RegExp(`^ {0,3}${open[1][0]}{${open[1].length},}\\s*$`);
    const end = lines.findIndex((line, at) => at > from && close.test(line));
    const last = end < 0 ? lines.length : end;
    const text = lines.slice(from + 1, last).join("\n");
    return [{ type: "code", language: open[2]?.trim() ?? "", text }, last - from + 1];
  }
  const isIndented = (line: string) => /^ {4}/.test(line) || blank.test(line);
  if (!/^ {4}/.test(lines[from] ?? "")) return null;
  let last = from;
  while (last < lines.length && isIndented(lines[last] ?? "")) last += 1;
  const text = lines.slice(from, last).map((line) => line.slice(4)).join("\n").trimEnd();
  return [{ type: "code", language: "", text }, last - from];
}

function readLine(line: string): Read | null {
  const title = heading.exec(line);
  if (title?.[1]) return [{ type: "heading", depth: title[1].length, text: title[2] ?? "" }, 1];
  return rule.test(line) ? [{ type: "rule" }, 1] : null;
}

function readQuote(lines: readonly string[], from: number, depth: number): Read | null {
  if (!quote.test(lines[from] ?? "")) return null;
  let last = from;
  // A paragraph continues in lines without `>`.
  while (last < lines.length && (quote.test(lines[last] ?? "") || goesOn(lines, last))) last += 1;
  const inner = lines.slice(from, last).map((line) => line.replace(quote, ""));
  return [{ type: "quote", blocks: read(inner, depth + 1) }, last - from];
}

function readList(lines: readonly string[], from: number, depth: number): Read | null {
  const first = marker.exec(lines[from] ?? "");
  if (!first) return null;
  const items: Item[] = [];
  let [at, loose] = [from, false];
  for (;;) {
    const begin = marker.exec(lines[at] ?? "");
    if (!begin || !begin[2] !== !first[2] || rule.test(lines[at] ?? "")) break;
    const inner = itemLines(lines, at, begin[0].length);
    at += inner.length;
    const trailing = inner.length - 1 - inner.findLastIndex((line) => !blank.test(line));
    const goesOn = marker.test(lines[at] ?? "");
    loose ||= inner.slice(1, inner.length - trailing).some((line) => blank.test(line));
    loose ||= trailing > 0 && goesOn;
    items.push(itemOf(inner, depth));
  }
  return [{ type: "list", start: first[2] ? Number(first[2]) : null, items, loose }, at - from];
}

function itemLines(lines: readonly string[], from: number, indent: number): readonly string[] {
  const inner = [(lines[from] ?? "").slice(indent)];
  for (let at = from + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const inside = line.search(/\S/);
    if (inside < 0) inner.push("");
    else if (inside >= indent) inner.push(line.slice(indent));
    // Models indent a list inside "1." by two spaces instead of three.
    else if (marker.test(line) && inside >= 2) inner.push(line.slice(2));
    else if (!marker.test(line) && goesOn(lines, at)) inner.push(line);
    else break;
  }
  return inner;
}

function itemOf(lines: readonly string[], depth: number): Item {
  const box = /^\[([ xX])\] /.exec(lines[0] ?? "");
  if (!box) return { checked: null, blocks: read(lines, depth + 1) };
  const rest = [(lines[0] ?? "").slice(4), ...lines.slice(1)];
  return { checked: box[1] !== " ", blocks: read(rest, depth + 1) };
}

function readTable(lines: readonly string[], from: number): Read | null {
  const [top, below] = [lines[from] ?? "", lines[from + 1] ?? ""];
  if (!top.includes("|") || !delimiters.test(below)) return null;
  const header = cells(top);
  const aligned = cells(below).map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return "";
  });
  if (aligned.length !== header.length) return null;
  let last = from + 2;
  while (last < lines.length && !blank.test(lines[last] ?? "") && !begins(lines[last] ?? "")) last += 1;
  const rows = lines.slice(from + 2, last).map((line) => {
    const row = cells(line);
    return header.map((_, at) => row[at] ?? "");
  });
  return [{ type: "table", aligned, header, rows }, last - from];
}

function cells(line: string): readonly string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function readParagraph(lines: readonly string[], from: number): Read {
  let last = from + 1;
  while (last < lines.length && goesOn(lines, last)) {
    const underline = /^ {0,3}(=+|-+)\s*$/.exec(lines[last] ?? "");
    if (underline?.[1]) {
      const text = lines.slice(from, last).join("\n").trim();
      return [{ type: "heading", depth: underline[1].startsWith("=") ? 1 : 2, text }, last - from + 1];
    }
    last += 1;
  }
  const text = lines.slice(from, last).map((line) => line.trimStart()).join("\n").trimEnd();
  return [{ type: "paragraph", text }, last - from];
}

/** Whether a line belongs to the paragraph of the line above it. */
function goesOn(lines: readonly string[], at: number): boolean {
  const [above, line] = [lines[at - 1] ?? "", lines[at] ?? ""];
  const isText = !blank.test(above) && !heading.test(above) && !fence.test(above);
  return isText && !blank.test(line) && (!begins(line) || /^ {0,3}-+\s*$/.test(line));
}

function begins(line: string): boolean {
  const item = marker.exec(line);
  // A list ends a paragraph only if its first item is a bullet or number 1, and is not empty.
  const isItem = item !== null && (!item[2] || item[2] === "1") && item[0].length < line.length;
  return fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line) || isItem;
}
