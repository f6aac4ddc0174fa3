// Removes secrets from the bytes of a response, also where a secret is split between chunks, or over the deltas of a stream.

import { joined, without } from "./secret-search.js";
import type { KnownSecrets } from "./secret-search.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const NOTHING = new Uint8Array();

/** A longer line is not a delta. It is passed on as it arrives. */
const LONGEST_LINE = 256 * 1_024;

/** How much is held back at most while a secret may go on in the next delta. */
const MOST_HELD = 64 * 1_024;

/** The members of a frame in which providers stream text. */
const STREAMED = new Set(["content", "text", "thinking", "reasoning", "reasoning_content", "refusal", "arguments", "partial_json"]);

/** The members that say that an answer has ended. */
const LAST = new Set(["finish_reason", "stop_reason", "finishReason", "done_reason", "error"]);

/** Removes the secrets from one response. */
export class SecretFilter {
  readonly #secrets: KnownSecrets;
  readonly #frames: SplitSecrets;
  /** The end of the bytes, if it may be the beginning of a secret. */
  #held: Uint8Array = NOTHING;

  constructor(secrets: KnownSecrets) {
    this.#secrets = secrets;
    this.#frames = new SplitSecrets(secrets);
  }

  /** The bytes that can be passed on now. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#secrets.isEmpty) return bytes;
    const text = this.#held.length === 0 ? bytes : joined([this.#held, bytes]);
    const { places, open } = this.#secrets.find(text, false);
    this.#held = text.slice(open);
    return this.#frames.push(without(text.subarray(0, open), places));
  }

  /** The bytes that were held back, at the end of the stream. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = NOTHING;
    const clean = without(held, this.#secrets.find(held, true).places);
    return joined([this.#frames.push(clean), this.#frames.end()]);
  }
}

/** A line of the stream that waits. */
interface Line {
  /** The line with its end. */
  bytes: Uint8Array;
  /** Its JSON, and what stands before it. */
  readonly frame: unknown;
  readonly before: string;
  readonly after: string;
  isChanged: boolean;
}

/** A piece of a text, in a line that waits. */
interface Piece {
  readonly line: Line;
  readonly holder: Record<string, string>;
  readonly member: string;
}

/**
 * Finds secrets that are split over the deltas of a stream. A line whose text ends with what may be the beginning of a
 * secret waits for the next line with the same text, and so do the lines behind it.
 */
class SplitSecrets {
  readonly #secrets: KnownSecrets;
  /** The unfinished line. `null`: the line is too long, and is passed on as it arrives. */
  #line: Uint8Array[] | null = [];
  #lineBytes = 0;
  #waiting: Line[] = [];
  /** The pieces at the end of each text that may contain a secret, by the place of the text in its frames. */
  readonly #open = new Map<string, Piece[]>();

  constructor(secrets: KnownSecrets) {
    this.#secrets = secrets;
  }

  push(bytes: Uint8Array): Uint8Array {
    const out: Uint8Array[] = [];
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      if (bytes[at] !== 0x0a && bytes[at] !== 0x0d) continue;
      this.#add(bytes.subarray(from, at + 1), out);
      this.#endLine(out);
      from = at + 1;
    }
    this.#add(bytes.subarray(from), out);
    return joined(out);
  }

  end(): Uint8Array {
    const out: Uint8Array[] = [];
    this.#endLine(out);
    this.#open.clear();
    this.#release(out);
    return joined(out);
  }

  #add(part: Uint8Array, out: Uint8Array[]): void {
    if (this.#line === null) {
      out.push(part);
      return;
    }
    this.#line.push(part);
    this.#lineBytes += part.length;
    if (this.#lineBytes <= LONGEST_LINE) return;
    this.#open.clear();
    this.#release(out);
    out.push(...this.#line);
    this.#line = null;
  }

  #endLine(out: Uint8Array[]): void {
    const parts = this.#line;
    [this.#line, this.#lineBytes] = [[], 0];
    // A part may be in a buffer that its owner uses again.
    if (parts !== null && parts.length > 0) this.#take(parts.length === 1 ? parts[0]!.slice() : joined(parts), out);
  }

  #take(bytes: Uint8Array, out: Uint8Array[]): void {
    const line = lineOf(bytes);
    const texts = new Map<string, Piece>();
    const isLast = line.frame === undefined ? line.before === "[DONE]" : collect(line.frame, "", line, texts);
    this.#waiting.push(line);
    // A text in another place means that the model has ended the texts before.
    if (texts.size > 0) for (const place of this.#open.keys()) if (!texts.has(place)) this.#open.delete(place);
    for (const [place, piece] of texts) this.#search(place, piece);
    const held = this.#waiting.reduce((sum, each) => sum + each.bytes.length, 0);
    if (isLast || held > MOST_HELD) this.#open.clear();
    this.#release(out);
  }

  /** Searches a text with its newest piece, and keeps the pieces at whose end a secret may begin. */
  #search(place: string, newest: Piece): void {
    const pieces = [...(this.#open.get(place) ?? []), newest];
    const texts = pieces.map(({ holder, member }) => encoder.encode(holder[member]));
    const { places, open } = this.#secrets.find(joined(texts), false);
    let begin = 0;
    const stillOpen: Piece[] = [];
    for (const [n, piece] of pieces.entries()) {
      const end = begin + texts[n]!.length;
      if (places.some(([from, to]) => from < end && to > begin)) redact(piece, texts[n]!, begin, places);
      if (end > open) stillOpen.push(piece);
      begin = end;
    }
    if (stillOpen.length > 0) this.#open.set(place, stillOpen);
    else this.#open.delete(place);
  }

  /** Passes on the lines before the first one whose text is still open. */
  #release(out: Uint8Array[]): void {
    const open = new Set([...this.#open.values()].flat().map(({ line }) => line));
    const first = open.size === 0 ? -1 : this.#waiting.findIndex((line) => open.has(line));
    const released = this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
    for (const line of released) out.push(line.isChanged ? encoder.encode(line.before + JSON.stringify(line.frame) + line.after) : line.bytes);
  }
}

/** Replaces the secrets of a text in one of its pieces. A secret is replaced where it begins, and cut out of the later pieces. */
function redact({ line, holder, member }: Piece, text: Uint8Array, begin: number, places: readonly (readonly [number, number])[]): void {
  const inside = places.map(([from, to]) => [from - begin, to - begin] as const).filter(([from, to]) => from < text.length && to > 0);
  const goesOn = inside.filter(([from]) => from < 0);
  const cut = Math.max(0, ...goesOn.map(([, to]) => Math.min(to, text.length)));
  const begun = inside.filter(([from]) => from >= 0).map(([from, to]) => [from - cut, Math.min(to, text.length) - cut] as const);
  holder[member] = decoder.decode(without(text.subarray(cut), begun));
  line.isChanged = true;
}

/** Reads a line: an event with JSON, or only JSON. Any other line has no frame. */
function lineOf(bytes: Uint8Array): Line {
  const text = decoder.decode(bytes);
  const [, before = "", json = "", after = ""] = /^((?:data:)?\s*)(.*?)(\s*)$/s.exec(text)!;
  const none = { bytes, frame: undefined, before: json, after: "", isChanged: false };
  if (!/^[{[]/.test(json) || json === "[DONE]") return none;
  try {
    return { bytes, frame: JSON.parse(json) as unknown, before, after, isChanged: false };
  } catch {
    return none;
  }
}

/** Collects the texts of a frame by their places. Returns whether the frame says that the answer has ended. */
function collect(value: unknown, place: string, line: Line, texts: Map<string, Piece>): boolean {
  if (typeof value !== "object" || value === null) return false;
  const holder = value as Record<string, string>;
  // Blocks and tool calls have numbers. The same number is the same text, wherever it is in its list.
  const number = typeof holder["index"] === "number" ? `#${holder["index"]}` : "";
  let isLast = holder["type"] === "message_stop" || (holder["done"] as unknown) === true;
  for (const member of Object.keys(holder)) {
    const inner = holder[member] as unknown;
    // Anthropic's start of a block may have its first text.
    const name = member === "content_block" ? "delta" : member;
    const here = `${place}${number}.${Array.isArray(value) && hasIndex(inner) ? "" : name}`;
    if (typeof inner === "string") {
      if (STREAMED.has(member) && inner !== "") texts.set(here, { line, holder, member });
    } else isLast = collect(inner, here, line, texts) || isLast;
    if (LAST.has(member) && inner !== null && inner !== "") isLast = true;
  }
  return isLast;
}

const hasIndex = (value: unknown): boolean => typeof (value as { index?: unknown } | null)?.index === "number";
