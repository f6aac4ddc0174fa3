// How a page or a web worker gets the wasm: from beside this module.

import { fetchModule } from "./fetch.js";

export const load = (): Promise<WebAssembly.Module> => fetchModule(new URL("../core.wasm", import.meta.url));
