// How a page or a web worker gets the wasm: from beside this module, the part it starts with first.

import type { Wasm } from "../wasm.js";
import { fetchParts } from "./parts.js";

export const load = (): Promise<Wasm | WebAssembly.Module> =>
  fetchParts(new URL("../page.wasm", import.meta.url), new URL("../rest.wasm", import.meta.url));
