// lockgate/transcript in an edge worker.

import module from "../core.wasm";

import { transcriptWith } from "../transcript.js";

export const { checkTranscript, repairTranscript } = await transcriptWith(() => module);
