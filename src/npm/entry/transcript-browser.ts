// lockgate/transcript in a page or a web worker.

import { transcriptWith } from "../transcript.js";
import { fetchModule } from "./fetch.js";

const load = (): Promise<WebAssembly.Module> => fetchModule(new URL("../core.wasm", import.meta.url));

export const { checkTranscript, repairTranscript } = await transcriptWith(load);
