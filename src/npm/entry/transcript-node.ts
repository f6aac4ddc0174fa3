// lockgate/transcript in Node.

import { readFileSync } from "node:fs";

import { transcriptWith } from "../transcript.js";

const load = (): WebAssembly.Module => new WebAssembly.Module(readFileSync(new URL("../core.wasm", import.meta.url)));

export const { checkTranscript, repairTranscript } = await transcriptWith(load);
