// Builds the page into target/www. Only the alias below contains the folder of the built package.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import type { HtmlTagDescriptor, Plugin } from "vite";
import { policyInPage } from "../src/build/web/policy.mjs";
import { shell } from "./text/shell.ts";
import { talk } from "./text/sessions.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Writes the texts of `shell.ts` into the HTML. */
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

/** Adds the Content-Security-Policy and the preload links of the wasm to the HTML. */
const head: Plugin = {
  name: "head",
  apply: "build",
  transformIndexHtml: {
    order: "post",
    handler(html, { bundle = {} }) {
      // Both parts, because the agent of this page uses features of the second part.
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

/** Replaces Vite's preload function by preload.js. */
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
      { find: /^lockgate\/remote$/, replacement: here("../dist/remote/remote.js") },
    ],
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { fs: { allow: [here("..")] } },
  build: {
    outDir: here("../target/www"),
    emptyOutDir: true,
    target: "es2022",
    // The wasm must stay a file, so that it can be compiled while it loads.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          // A visit starts with two files, the package and the page: each has its own budget and its own changes. Parts that
          // load later do not split these files.
          groups: [
            { name: "lockgate", test: here("../dist/"), tags: ["$initial"] },
            { name: "index", tags: ["$initial"] },
            { name: "later", test: here("app/later.ts") },
          ],
        },
      },
    },
  },
});
