// Loads the wasm in Node: from the file in the folder above this module. Two entry points use it.

import { readFileSync } from "node:fs";

import { strange, strangeSeal } from "../runtime/wasm.js";
import { compileInline } from "./compile.js";

/** Loads the file synchronously, or throws. */
export function loadNow(): WebAssembly.Module {
  const file = new URL("../core.wasm", import.meta.url);
  const module = new WebAssembly.Module(readFileSync(file));
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal, file.href);
  return module;
}

/** A server bundle may lose the file, keep an old one, or lose the URL of this module. Then the copy inside the package is used. */
export async function load(): Promise<WebAssembly.Module> {
  try {
    return loadNow();
  } catch (error) {
    return compileInline().catch(() => {
      throw error;
    });
  }
}
