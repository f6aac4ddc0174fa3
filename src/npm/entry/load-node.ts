// How Node gets the wasm: from the file beside this module.

import { readFileSync } from "node:fs";

import { compiledInline } from "./compile.js";

/** At once, or not at all. */
export const loadNow = (): WebAssembly.Module => new WebAssembly.Module(readFileSync(new URL("../core.wasm", import.meta.url)));

/** A server bundle may lose the file, or the address of this module; then the copy inside the package takes its place. */
export const load = async (): Promise<WebAssembly.Module> => {
  try {
    return loadNow();
  } catch (error) {
    return compiledInline().catch(() => {
      throw error;
    });
  }
};
