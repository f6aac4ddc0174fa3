// Turns the return values of tools into blocks that a model can read.

import type { Block } from "../types.js";

/** The most text that a result may have. The middle of a longer text is left out before eviction sees the result. */
export const MAX_CHARS = 5_000_000;

/** The most characters that a block of text may have besides its text, as JSON. */
const MAX_MEMBERS = 10_000;

/** The most values that a result may consist of: a Proxy can claim to have any number of them. */
const MAX_VALUES = 1_000_000;

const SHOWN = new Set(["text", "image", "audio", "video", "file"]);

/** The blocks of a result, and how many characters were left out. */
export interface Result {
  readonly blocks: readonly Block[];
  readonly leftOut: number;
}

/** The return value of a tool as blocks: text and blocks stay the same, anything else becomes JSON. */
export function toResult(answer: unknown): Result {
  const blocks = toBlocks(answer);
  let left = MAX_CHARS;
  let [leftOut, dropped] = [0, 0];
  const cut = blocks.flatMap((block): readonly Block[] => {
    if (block.type !== "text") return [block];
    if (left === 0) {
      dropped += block.text.length;
      return [];
    }
    const text = shortened(block.text, left);
    left -= Math.min(left, block.text.length);
    leftOut += text.leftOut;
    return [{ ...slim(block), text: text.kept }];
  });
  if (dropped > 0) cut.push({ type: "text", text: noteOf(dropped) });
  return { blocks: cut, leftOut: leftOut + dropped };
}

/** A block of text without its other members, if they are so long that they are text themselves. */
function slim(block: Block & { readonly type: "text" }): Block & { readonly type: "text" } {
  const isLong = Object.keys(block).length > 2 && JSON.stringify({ ...block, text: "" }).length > MAX_MEMBERS;
  return isLong ? { type: "text", text: block.text } : block;
}

function toBlocks(answer: unknown): readonly Block[] {
  if (typeof answer === "string") return [{ type: "text", text: answer }];
  if (answer === undefined) return [{ type: "text", text: "Done." }];
  if (isBlock(answer)) return [copied<Block>(answer)];
  if (Array.isArray(answer) && answer.length > 0 && answer.length <= MAX_VALUES && answer.every(isBlock)) return copied<Block[]>(answer);
  return [{ type: "text", text: toText(answer) }];
}

function isBlock(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { type, text, source } = value as { type?: unknown; text?: unknown; source?: unknown };
  if (typeof type !== "string" || !SHOWN.has(type)) return false;
  return type === "text" ? typeof text === "string" : typeof source === "object" && source !== null;
}

const copied = <T>(value: unknown): T => JSON.parse(toText(value)) as T;

/** JSON that keeps all numbers: a BigInt is written with all digits, NaN and Infinity by name. */
function toText(answer: unknown): string {
  let n = 0;
  let mark: string | undefined;
  const exact = (_: string, value: unknown): unknown => {
    if (++n > MAX_VALUES) throw new RangeError(`it has more than ${MAX_VALUES} values`);
    if (typeof value === "bigint") return `${(mark ??= newMark())}${value}`;
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  };
  try {
    const text = JSON.stringify(answer, exact);
    if (text === undefined) return String(answer);
    return mark === undefined ? text : text.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The tool's result cannot be written as JSON: ${why}`, { cause });
  }
}

/** What stands before the digits of a BigInt until its quotes are removed. It is random and new for each result, so no text of a tool can have it. */
function newMark(): string {
  return `integer-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-")}-`;
}

/** The start and the end of a text that is too long, with a note in between. Never cuts a surrogate pair. */
export function shortened(text: string, most: number): { readonly kept: string; readonly leftOut: number } {
  if (text.length <= most) return { kept: text, leftOut: 0 };
  const isInside = (place: number): boolean => /^[\udc00-\udfff]/.test(text.charAt(place));
  let [head, tail] = [most >> 1, text.length - (most >> 1)];
  if (isInside(head)) head -= 1;
  if (isInside(tail)) tail += 1;
  const leftOut = tail - head;
  return { kept: `${text.slice(0, head)}${noteOf(leftOut)}${text.slice(tail)}`, leftOut };
}

const noteOf = (leftOut: number): string => `\n[${leftOut} characters were left out here]\n`;
