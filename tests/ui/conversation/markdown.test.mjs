// Markdown in an answer: text and external links, and nothing that runs or loads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const bundle = await build({
  entryPoints: [new URL("../../../www/markdown/markdown.tsx", import.meta.url).pathname],
  bundle: true,
  write: false,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
});
const { nodesOf } = await import(
  `data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`
);

/** The nodes, one per line: `tag attributes`, and texts in quotes. The direction has a test of its own. */
function shown(node) {
  if (Array.isArray(node)) return node.flatMap(shown);
  if (node === null || node === undefined || typeof node === "boolean") return [];
  if (typeof node !== "object") return [JSON.stringify(node)];
  const { children, ...attributes } = node.props;
  const tag = [
    node.type,
    ...Object.entries(attributes)
      .filter(([name, value]) => value !== undefined && name !== "dir")
      .map(([name, value]) => `${name}=${value}`),
  ].join(" ");
  return [tag, ...shown(children)];
}

const linkTo = (href) => `a href=${href} target=_blank rel=noopener noreferrer`;

test("each outer block has the direction of its text, inner blocks have that of the block around them, and code runs from left to right", () => {
  const directed = (node) => {
    if (Array.isArray(node)) return node.flatMap(directed);
    if (typeof node !== "object" || node === null) return [];
    return [...(node.props.dir ? [`${node.type} ${node.props.dir}`] : []), ...directed(node.props.children)];
  };
  const text = "one\n\n# two\n\n- three\n\n  four\n\n> five\n> - six `code`\n\n| a |\n|---|\n| b |";
  assert.deepEqual(directed(nodesOf(text)), ["p auto", "h3 auto", "ul auto", "blockquote auto", "code ltr", "div auto"]);
});

test("raw HTML is shown as text", () => {
  assert.deepEqual(shown(nodesOf("<img src=x onerror=alert(1)>")), [
    "p",
    '"<img src=x onerror=alert(1)>"',
  ]);
  assert.ok(!shown(nodesOf("a <script>alert(1)</script> b")).includes("script"));
});

test("only web and mail addresses become links", () => {
  assert.deepEqual(shown(nodesOf("[a](https://a.example/)")), [
    "p",
    linkTo("https://a.example/"),
    '"a"',
  ]);
  assert.deepEqual(shown(nodesOf("[m](mailto:a@b.example)")), [
    "p",
    linkTo("mailto:a@b.example"),
    '"m"',
  ]);
  for (const href of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "//x.example",
    "#/s/1",
    "x",
  ]) {
    assert.deepEqual(shown(nodesOf(`[a](${href})`)), ["p", '"a"'], href);
  }
});

test("an image is shown as a link and is not loaded", () => {
  assert.deepEqual(shown(nodesOf("![boat](https://a.example/b.png)")), [
    "p",
    linkTo("https://a.example/b.png"),
    '"boat"',
  ]);
});

test("character references are read in text and left alone in code", () => {
  assert.deepEqual(shown(nodesOf("1 &lt; 2 `&lt;`")), ["p", '"1 < 2 "', "code", '"&lt;"']);
});

test("text with extreme nesting is still shown", () => {
  for (const text of [
    ">".repeat(5000) + "a",
    "[".repeat(5000),
    "- ".repeat(3000) + "a",
    "*".repeat(5000) + "a",
  ]) {
    assert.match(shown(nodesOf(text)).join(""), /[a[]/);
  }
});

test("lists can be nested, start at any number, and have checkboxes", () => {
  const text = "1. one\n2. two\n   - in\n   - side\n\nafter\n\n- [x] done\n- [ ] not";
  assert.deepEqual(shown(nodesOf(text)), [
    ...["ol start=1", "li", '"one"', "li", '"two"', "ul", "li", '"in"', "li", '"side"'],
    ...["p", '"after"', "ul"],
    ...["li class=task", "input type=checkbox disabled=true checked=true aria-label=task", '"done"'],
    ...["li class=task", "input type=checkbox disabled=true checked=false aria-label=task", '"not"'],
  ]);
});

test("emphasis needs both markers, and is not read inside words and formulas", () => {
  const inner = (text) => shown(nodesOf(text)).slice(1);
  assert.deepEqual(inner("**a *b* c** d"), ["strong", '"a "', "em", '"b"', '" c"', '" d"']);
  assert.deepEqual(inner("2 * 3 * 4 and snake_case_name"), ['"2 * 3 * 4 and snake_case_name"']);
  const maths = "$a_1 * b_2$ and \\(x_1 * y_1\\)";
  assert.deepEqual(inner(maths), [JSON.stringify(maths)]);
  assert.deepEqual(inner("it costs $5 and *not* $6"), ['"it costs $5 and "', "em", '"not"', '" $6"']);
  assert.deepEqual(inner("`a * b` ~~gone~~"), ["code", '"a * b"', '" "', "del", '"gone"']);
});

test("a table keeps its cells for every split of the stream", () => {
  assert.deepEqual(shown(nodesOf("| a | b |\n|---|--:|\n| `x \\| y` |")), [
    ...["div class=table tabIndex=0", "table", "thead", "tr", "th", '"a"', "th class=right", '"b"'],
    ...["tbody", "tr", "td", "code", '"x | y"', "td class=right"],
  ]);
  assert.deepEqual(shown(nodesOf("a | b\nno table")), ["p", '"a | b\\nno table"']);
});

test("quotes, rules and headings are shown as such, and addresses are links", () => {
  assert.deepEqual(shown(nodesOf("# A\n\n> q\nlazy\n\n---\n\nB\n===")), [
    ...["h3 data-depth=1", '"A"', "blockquote", "p", '"q\\nlazy"', "hr", "h3 data-depth=1", '"B"'],
  ]);
  assert.deepEqual(shown(nodesOf("see https://a.example/x_y_z.")), ["p", '"see "', linkTo("https://a.example/x_y_z"), '"https://a.example/x_y_z"', '"."']);
});

test("text that could slow down a parser is read quickly", () => {
  const started = performance.now();
  for (const piece of ["*a ", "_a_b", "[a](", "`a ``", "**a* ", "![", "$a", "<", "|a|\n", "- a\n  ", "> ", "1. "]) {
    nodesOf(piece.repeat(20_000));
  }
  assert.ok(performance.now() - started < 20_000);
});
