// Builds the page into target/www; only the alias below knows where the package was built.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import type { HtmlTagDescriptor, Plugin } from "vite";
import { policyInPage } from "../src/build/policy.mjs";
import { shell } from "./text/shell.ts";
import { talk } from "./text/talk.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The words of the page before its script has come stand with all the others. */
const words: Plugin = {
  name: "words",
  transformIndexHtml: {
    order: "pre",
    handler: (html) =>
      html.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => {
        const texts = { ...shell, user: talk.user };
        const text = Object.entries(texts).find(([key]) => key === name)?.[1];
        if (text === undefined) throw new Error(`${whole} is not among the texts of the shell`);
        return text;
      }),
  },
};

/** The content policy in the page itself, and the wasm asked for before the script that wants it. */
const head: Plugin = {
  name: "head",
  apply: "build",
  transformIndexHtml: {
    order: "post",
    handler(html, { bundle = {} }) {
      // Both parts: an agent that can do all that this page shows needs them at once.
      const wasm = Object.keys(bundle).filter((name) => name.endsWith(".wasm"));
      const preload = (name: string) => ({
        rel: "preload",
        href: `./${name}`,
        as: "fetch",
        crossorigin: "anonymous",
      });
      const tags: HtmlTagDescriptor[] = [
        {
          tag: "meta",
          attrs: { "http-equiv": "Content-Security-Policy", content: policyInPage },
          injectTo: "head-prepend",
        },
        ...wasm.map((name) => ({ tag: "link", attrs: preload(name), injectTo: "head" as const })),
      ];
      return { html: html.replace(/\n\s+/g, "\n"), tags };
    },
  },
};

/** What runs before a part of the page that is loaded later: its styles first, and its scripts at the same time. */
const preload: Plugin = {
  name: "preload",
  enforce: "pre",
  apply: "build",
  load: (id) => (id === "\0vite/preload-helper.js" ? readFileSync(here("preload.js"), "utf8") : undefined),
};

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [words, head, preload],
  resolve: {
    alias: [
      { find: /^lockgate$/, replacement: here("../dist/entry/browser.js") },
      { find: /^lockgate\/remote$/, replacement: here("../dist/remote.js") },
    ],
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { fs: { allow: [here("..")] } },
  build: {
    outDir: here("../target/www"),
    emptyOutDir: true,
    target: "es2022",
    // The wasm must stay a file that streams.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What a visit begins with is two files, the package and the page: each has its own size, and changes at its
          // own time. What is opened later takes nothing of them apart.
          groups: [
            { name: "lockgate", test: here("../dist/"), tags: ["$initial"] },
            { name: "index", tags: ["$initial"] },
            { name: "later", test: here("later.ts") },
          ],
        },
      },
    },
  },
});
