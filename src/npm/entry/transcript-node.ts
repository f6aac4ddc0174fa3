// lockgate/transcript in Node: nothing waits here, so that it can be had with `require`.

import { LockgateError } from "../errors.js";
import { transcriptOf } from "../transcript-with.js";
import { loadEngineNow } from "../wasm.js";
import type { Engine } from "../wasm.js";
import { loadNow } from "./load-node.js";

export const { checkTranscript, repairTranscript } = transcriptOf(engine);

function engine(): Engine {
  try {
    return loadEngineNow(loadNow);
  } catch (cause) {
    if (LockgateError.isInstance(cause)) throw cause;
    const message = `the wasm could not be loaded: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new LockgateError("ENGINE_LOAD", message, { hint: "copy lockgate/core.wasm beside the bundle, or leave lockgate out of it", cause });
  }
}
