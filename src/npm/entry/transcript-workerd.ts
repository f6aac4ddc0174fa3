// lockgate/transcript in an edge worker.

import module from "../core.wasm";

import { transcriptOf } from "../transcript-with.js";
import { loadEngineNow } from "../wasm.js";

export const { checkTranscript, repairTranscript } = transcriptOf(() => loadEngineNow(() => module));
