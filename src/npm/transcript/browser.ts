// lockgate/transcript in a page or a web worker.

import { transcriptOf } from "./functions.js";
import { loadEngine } from "../runtime/wasm.js";
import { load } from "../entry/load-browser.js";

// Both functions are synchronous, so this module waits until the whole wasm is loaded.
const engine = await loadEngine(load);
await engine.whole();

export const { checkTranscript, repairTranscript } = transcriptOf(() => engine);
