// Builds the page into target/www; only the alias below knows where the package was built.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  base: "./",
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
    // The content policy allows no data: addresses, and the wasm must stay a file that streams.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
