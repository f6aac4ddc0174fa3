// Turns values of callers into JSON text that is safe for the wasm.

import { LockgateError } from "../errors.js";
import { wellFormed } from "./text.js";

/** The largest request. The wasm needs several times as much memory while it reads, and an edge worker has 128 MB. */
export const MAX_CHARS = 64_000_000;

/** The value as JSON text. Throws INPUT_INVALID. Rust checks the depth. */
export function jsonText(value: object | string, flag?: () => void): string {
  let text: string;
  try {
    text = wellFormed(JSON.stringify(value), flag);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LockgateError("INPUT_INVALID", `the input is not JSON: ${why}`, { hint: "use plain data without cycles and without deep nesting", cause });
  }
  if (text.length <= MAX_CHARS) return text;
  throw new LockgateError("INPUT_INVALID", `the input has ${text.length} characters; the limit is ${MAX_CHARS}`, { hint: "pass large content by URL" });
}
