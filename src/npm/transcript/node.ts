// lockgate/transcript in Node. The module loads synchronously, so that it works with `require`.

import { LockgateError } from "../errors.js";
import { transcriptOf } from "./functions.js";
import { loadEngineNow } from "../runtime/wasm.js";
import type { Engine } from "../runtime/wasm.js";
import { loadNow } from "../entry/load-node.js";

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
