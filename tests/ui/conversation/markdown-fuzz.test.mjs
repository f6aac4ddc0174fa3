// Random text as an answer: the page shows it with the few node types that it uses, and only with external links.
import assert from "node:assert/strict";
import process from "node:process";
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

const inputs = Number(process.env.INPUTS ?? 20_000);
const single = process.env.LOCKGATE_SEED;

const pieces = [
  "a", "word ", "\n", "\n\n", "  \n", "    ", "\t", "# ", "## ", "> ", "- ", "* ", "1. ", "- [x] ", "*", "**", "_", "__",
  "~~", "`", "```", "```js\n", "~~~", "[", "]", "](", ")", "![", "<", ">", "</", "<b>", "<script>", "</script>",
  "<img src=x onerror=alert(1)>", "<!--", "-->", "<![CDATA[", "&lt;", "&#x6a;", "&amp;", "&", "|", "|-|", "| a | b |\n",
  "---", "===", "\\", "javascript:", "data:text/html,", "https://a.example/", "//a.example", "mailto:a@b.example",
  "[a]: javascript:x", "[a]: https://a.example/ \"t\"", "[a]", "<https://a.example>", "www.a.example", "{", "}", "$", "$$",
  "\u0000", "\u202e", "\ufeff", "\ud800", "😀", "日本", "é", "\"", "'", "(", "onerror=", " ", "\r\n", "\u2028",
];

const tags = new Set(
  "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr input li mark ol p pre s span strong table tbody td th thead tr ul".split(" "),
);
const attributes = new Set("aria-label checked class className data-depth dir disabled href rel start style target title type align key tabIndex role".split(" "));

// Numbers that depend only on the seed.
function chanceOf(seed) {
  let state = (seed * 2_654_435_761 + 97) >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

function textOf(seed) {
  const below = chanceOf(seed);
  const n = below(20) === 0 ? 40 + below(200) : below(14);
  return Array.from({ length: n }, () => pieces[below(pieces.length)]).join("");
}

function check(node) {
  if (Array.isArray(node)) return node.forEach(check);
  if (node === null || typeof node !== "object") return undefined;
  if (typeof node.type === "string") {
    assert.ok(tags.has(node.type), `<${node.type}> is shown`);
    for (const [name, value] of Object.entries(node.props)) {
      if (name === "children") continue;
      assert.ok(attributes.has(name), `${node.type} has ${name}=${value}`);
      if (name === "dir") assert.ok([undefined, "auto", "ltr"].includes(value), `${node.type} has dir=${value}`);
      if (name === "href") assert.match(value, /^(https?:\/\/|mailto:)/i);
    }
  }
  return check(node.props?.children);
}

test("every text of an answer is shown, and nothing in it runs, loads or links into the page", () => {
  const seeds = single === undefined ? Array.from({ length: inputs }, (_, n) => n) : [Number(single)];
  for (const seed of seeds) {
    const text = textOf(seed);
    try {
      check(nodesOf(text));
    } catch (error) {
      error.message = `LOCKGATE_SEED=${seed}: ${error.message}: ${JSON.stringify(text)}`;
      throw error;
    }
  }
});
