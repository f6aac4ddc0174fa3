// Loads the wasm in a page or a web worker: from the folder above this module, in two parts. Two entry points use it.

import type { Wasm } from "../runtime/wasm.js";
import { fetchParts } from "./parts.js";

/** Fetches `page.wasm`, and `rest.wasm` in the background. */
export const load = (): Promise<Wasm | WebAssembly.Module> =>
  fetchParts(new URL("../page.wasm", import.meta.url), new URL("../rest.wasm", import.meta.url));
