// How Node gets the wasm: from the file beside this module.

import { readFileSync } from "node:fs";

import { strange, strangeSeal } from "../wasm.js";
import { compiledInline } from "./compile.js";

/** At once, or not at all. */
export function loadNow(): WebAssembly.Module {
  const file = new URL("../core.wasm", import.meta.url);
  const module = new WebAssembly.Module(readFileSync(file));
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal, file.href);
  return module;
}

/** A server bundle may lose the file, keep an old one, or lose the address of this module; then the copy inside the package takes its place. */
export async function load(): Promise<WebAssembly.Module> {
  try {
    return loadNow();
  } catch (error) {
    return compiledInline().catch(() => {
      throw error;
    });
  }
}
