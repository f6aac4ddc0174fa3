// lockgate/transcript in a page or a web worker.

import { transcriptOf } from "../transcript-with.js";
import { loadEngine } from "../wasm.js";
import { load } from "./load-browser.js";

// Both answer at once, so this module waits for the wasm, all of it.
const engine = await loadEngine(load);
await engine.whole();

export const { checkTranscript, repairTranscript } = transcriptOf(() => engine);
