// What tools answer with, as blocks that a model reads.

import type { Block } from "./types.js";

/** As much text as a result may hold; the middle of a longer one is left out before it goes anywhere. Eviction works on what is left. */
const MOST_CHARS = 5_000_000;

/** As many values as an answer may be made of: a Proxy may claim to have any number of them. */
const MOST_VALUES = 1_000_000;

const SHOWN = new Set(["text", "image", "audio", "video", "file"]);

/** A result, and how many characters of it were left out. */
export interface Result {
  readonly blocks: readonly Block[];
  readonly leftOut: number;
}

/** What a tool answered, as blocks: text as it is, blocks as they are, anything else as JSON. */
export function toResult(answer: unknown): Result {
  const blocks = toBlocks(answer);
  let left = MOST_CHARS;
  let leftOut = 0;
  const cut = blocks.map((block) => {
    if (block.type !== "text") return block;
    const text = shortened(block.text, left);
    left -= Math.min(left, block.text.length);
    leftOut += text.leftOut;
    return { ...block, text: text.kept };
  });
  return { blocks: cut, leftOut };
}

function toBlocks(answer: unknown): readonly Block[] {
  if (typeof answer === "string") return [{ type: "text", text: answer }];
  if (answer === undefined) return [{ type: "text", text: "Done." }];
  if (isBlock(answer)) return [copied<Block>(answer)];
  if (Array.isArray(answer) && answer.length > 0 && answer.length <= MOST_VALUES && answer.every(isBlock)) return copied<Block[]>(answer);
  return [{ type: "text", text: toText(answer) }];
}

function isBlock(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { type, text, source } = value as { type?: unknown; text?: unknown; source?: unknown };
  if (typeof type !== "string" || !SHOWN.has(type)) return false;
  return type === "text" ? typeof text === "string" : typeof source === "object" && source !== null;
}

const copied = <T>(value: unknown): T => JSON.parse(toText(value)) as T;

const DIGITS = /"\\u0000integer:(-?\d+)"/g;

/** JSON that loses nothing quietly: a BigInt is written with all its digits, NaN and Infinity by their names. */
function toText(answer: unknown): string {
  let n = 0;
  const exact = (_: string, value: unknown): unknown => {
    if (++n > MOST_VALUES) throw new RangeError(`it has more than ${MOST_VALUES} values`);
    if (typeof value === "bigint") return `\0integer:${value}`;
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  };
  try {
    const text = JSON.stringify(answer, exact);
    return text === undefined ? String(answer) : text.replace(DIGITS, "$1");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The tool's result cannot be written as JSON: ${why}`, { cause });
  }
}

/** The beginning and the end of a text that is too long, with a note in between; never half a character. */
function shortened(text: string, most: number): { readonly kept: string; readonly leftOut: number } {
  if (text.length <= most) return { kept: text, leftOut: 0 };
  const isInside = (place: number): boolean => /^[\udc00-\udfff]/.test(text.charAt(place));
  let [head, tail] = [most >> 1, text.length - (most >> 1)];
  if (isInside(head)) head -= 1;
  if (isInside(tail)) tail += 1;
  const leftOut = tail - head;
  return { kept: `${text.slice(0, head)}\n[${leftOut} characters were left out here]\n${text.slice(tail)}`, leftOut };
}
