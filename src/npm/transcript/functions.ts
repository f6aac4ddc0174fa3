// The functions of lockgate/transcript. Each host has an entry file of its own, which passes its way of loading the wasm.

import { LockgateError } from "../errors.js";
import { jsonText } from "../values/json.js";
import type { Dialect, checkTranscript, repairTranscript } from "./transcript.js";
import type { Msg } from "../types.js";
import type { Engine } from "../runtime/wasm.js";

/** Makes both functions for one way of loading the wasm. */
export function transcriptOf(engine: () => Engine): { checkTranscript: typeof checkTranscript; repairTranscript: typeof repairTranscript } {
  const ask = <T>(what: "checkTranscript" | "repairTranscript", messages: readonly Msg[], dialect: Dialect): T => {
    if (!Array.isArray(messages)) throw new LockgateError("INPUT_INVALID", "the transcript is not a list", { hint: "pass a list of Msg" });
    const text = jsonText(messages);
    const instance = engine().instance();
    return JSON.parse(instance.enter(() => instance.core[what](text, dialect))) as T;
  };
  return {
    checkTranscript: (messages, dialect) => ask("checkTranscript", messages, dialect),
    repairTranscript: (messages, dialect) => ask("repairTranscript", messages, dialect),
  };
}
