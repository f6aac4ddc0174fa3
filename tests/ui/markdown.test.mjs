// What an answer may put on the page: text, links out, and nothing that runs or loads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const bundle = await build({
  entryPoints: [new URL("../../www/markdown.tsx", import.meta.url).pathname],
  bundle: true,
  write: false,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
});
const { nodesOf } = await import(
  `data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`
);

/** The nodes as lines of their own: `tag attributes`, and texts in quotes. */
function shown(node) {
  if (Array.isArray(node)) return node.flatMap(shown);
  if (node === null || node === undefined || typeof node === "boolean") return [];
  if (typeof node !== "object") return [JSON.stringify(node)];
  const { children, ...attributes } = node.props;
  const tag = [
    node.type,
    ...Object.entries(attributes).map(([name, value]) => `${name}=${value}`),
  ].join(" ");
  return [tag, ...shown(children)];
}

const linkTo = (href) => `a href=${href} target=_blank rel=noopener noreferrer`;

test("raw HTML is shown as the text it is", () => {
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

test("an image is a link to it, and is not loaded", () => {
  assert.deepEqual(shown(nodesOf("![boat](https://a.example/b.png)")), [
    "p",
    linkTo("https://a.example/b.png"),
    '"boat"',
  ]);
});

test("character references are read in text and left alone in code", () => {
  assert.deepEqual(shown(nodesOf("1 &lt; 2 `&lt;`")), ["p", '"1 < 2 "', "code", '"&lt;"']);
});

test("text that nests without end is still shown", () => {
  for (const text of [
    ">".repeat(5000) + "a",
    "[".repeat(5000),
    "- ".repeat(3000) + "a",
    "*".repeat(5000) + "a",
  ]) {
    assert.match(shown(nodesOf(text)).join(""), /[a[]/);
  }
});
