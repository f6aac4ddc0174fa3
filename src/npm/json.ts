// What callers give, as JSON text that is safe to hand to the wasm.

import { LockgateError } from "./errors.js";
import { wellFormed } from "./text.js";

/** As much as one request may hold. The wasm takes several times that while it reads, and an edge worker has 128 MB. */
const MOST_CHARS = 64_000_000;

/** A caller's value as JSON text, or INPUT_INVALID. Depth is limited by whoever reads: Rust stops at 128. */
export function jsonText(value: object | string, flag?: () => void): string {
  let text: string;
  try {
    text = wellFormed(JSON.stringify(value), flag);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LockgateError("INPUT_INVALID", `the input is not JSON: ${why}`, { hint: "use plain data without cycles, and not nested too deep", cause });
  }
  if (text.length <= MOST_CHARS) return text;
  throw new LockgateError("INPUT_INVALID", `the input has ${text.length} characters, and may have ${MOST_CHARS}`, { hint: "put large things where the model can be given their address" });
}
