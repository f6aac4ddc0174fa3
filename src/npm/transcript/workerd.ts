// lockgate/transcript in an edge worker.

import module from "../core.wasm";

import { transcriptOf } from "./functions.js";
import { loadEngineNow } from "../runtime/wasm.js";

export const { checkTranscript, repairTranscript } = transcriptOf(() => loadEngineNow(() => module));
