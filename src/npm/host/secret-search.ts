// Finds secrets in a text. Each character of a secret may be escaped in its own way: for JSON, HTML or a URL.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const REPLACED = encoder.encode("[redacted]");

/** A text to search for, as code points. */
export type Needle = readonly number[];

/** Where secrets are in a text: from the first byte up to the last, in order. */
export interface Found {
  readonly places: readonly (readonly [from: number, to: number])[];
  /** Where the text ends with what may be the beginning of a secret; else its length. */
  readonly open: number;
}

/** A fixed set of secrets. */
export class KnownSecrets {
  /** By the first code point. */
  readonly #needles = new Map<number, Needle[]>();
  /** Whether a secret can begin with this byte, plain or escaped. */
  readonly #starts = new Uint8Array(256);

  constructor(needles: readonly Needle[]) {
    for (const needle of needles) {
      const first = needle[0]!;
      const others = this.#needles.get(first);
      if (others === undefined) this.#needles.set(first, [needle]);
      else others.push(needle);
      this.#starts[encoder.encode(String.fromCodePoint(first))[0]!] = 1;
    }
    if (needles.length > 0) for (const sign of "\\%&") this.#starts[sign.charCodeAt(0)] = 1;
  }

  get isEmpty(): boolean {
    return this.#needles.size === 0;
  }

  /** The text without the secrets. */
  text(text: string): string {
    if (this.isEmpty) return text;
    const bytes = encoder.encode(text);
    const { places } = this.find(bytes, true);
    return places.length === 0 ? text : decoder.decode(without(bytes, places));
  }

  /** Finds the secrets. `isWhole`: nothing follows the text. */
  find(text: Uint8Array, isWhole: boolean): Found {
    const places: [number, number][] = [];
    for (let at = 0; at < text.length; ) {
      const end = this.#starts[text[at]!] === 1 ? this.#endAt(text, at, isWhole) : NONE;
      if (end === OPEN) return { places, open: at };
      if (end !== NONE) places.push([at, end]);
      at = end === NONE ? at + 1 : end;
    }
    return { places, open: text.length };
  }

  /** Where the longest secret that begins here ends. */
  #endAt(text: Uint8Array, at: number, isWhole: boolean): number {
    let longest = NONE;
    for (const read of READERS) {
      const first = read(text, at);
      if (first === OPEN) {
        if (!isWhole) return OPEN;
        continue;
      }
      if (first === undefined) continue;
      for (const needle of this.#needles.get(first.code) ?? []) {
        const end = endOf(needle, text, first.next, isWhole);
        if (end === OPEN) return OPEN;
        longest = Math.max(longest, end);
      }
    }
    return longest;
  }
}

/** The bytes with each place replaced. */
export function without(bytes: Uint8Array, places: Found["places"]): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const [start, end] of places) {
    parts.push(bytes.subarray(from, start), REPLACED);
    from = end;
  }
  return joined([...parts, bytes.subarray(from)]);
}

/** One list of bytes. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// --- Reading a text character by character. Each character may be escaped in its own way. ---

/** No secret begins or ends here. */
const NONE = -1;

/** The text ends before this can be decided. */
const OPEN = -2;

interface Letter {
  readonly code: number;
  readonly next: number;
}

/** Reads a character. `undefined`: there is none in this notation. */
type ReadLetter = (text: Uint8Array, at: number) => Letter | typeof OPEN | undefined;

/** The most backslashes before an escape. Each level of JSON in JSON doubles them. */
const MOST_BACKSLASHES = 16;

/** The longest escape of HTML, between `&` and `;`. */
const LONGEST_ENTITY = 10;

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", sol: "/", bsol: "\\", plus: "+", equals: "=", num: "#", percnt: "%", colon: ":",
  semi: ";", comma: ",", period: ".", lowbar: "_", hyphen: "-", dash: "-", excl: "!", quest: "?", commat: "@", dollar: "$", ast: "*",
  lpar: "(", rpar: ")", lsqb: "[", rsqb: "]", lbrack: "[", rbrack: "]", lcub: "{", rcub: "}", verbar: "|", vert: "|", Hat: "^", grave: "`",
};

/** A character that is not escaped: UTF-8. */
const plain: ReadLetter = (text, at) => {
  const first = text[at];
  if (first === undefined) return OPEN;
  if (first < 0xc0) return { code: first, next: at + 1 };
  const n = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (at + n >= text.length) return OPEN;
  let code = first & (0x3f >> n);
  for (let i = 1; i <= n; i++) code = (code << 6) | (text[at + i]! & 0x3f);
  return { code, next: at + n + 1 };
};

/** An escape with backslashes, as in JSON and in source code. JSON in JSON has more of them. */
const slashed: ReadLetter = (text, at) => {
  const begin = at;
  while (text[at] === 0x5c && at - begin < MOST_BACKSLASHES) at++;
  if (at === begin) return undefined;
  const letter = plain(text, at);
  if (letter === OPEN || letter === undefined) return OPEN;
  const n = letter.code === 0x75 ? 4 : letter.code === 0x78 ? 2 : 0;
  return n === 0 ? letter : hex(text, letter.next, n, plain);
};

/** An escape of HTML, whose characters may be escaped with backslashes. */
const entity: ReadLetter = (text, at) => {
  const sign = slashedOrPlain(text, at);
  if (sign === OPEN) return OPEN;
  if (sign?.code !== 0x26) return undefined;
  let name = "";
  let next = sign.next;
  while (name.length <= LONGEST_ENTITY) {
    const letter = slashedOrPlain(text, next);
    if (letter === OPEN || letter === undefined) return letter;
    next = letter.next;
    if (letter.code === 0x3b) return named(name, next);
    name += String.fromCodePoint(letter.code);
    if (!/^(#|#[xX]?[0-9a-fA-F]*|[a-zA-Z]+)$/.test(name)) return undefined;
  }
  return undefined;
};

/** An escape of URLs, whose characters may be escaped in the other ways. A character may need several bytes. */
const percent: ReadLetter = (text, at) => {
  const first = percentByte(text, at);
  if (first === OPEN || first === undefined || first.code < 0xc0) return first;
  const n = first.code < 0xe0 ? 1 : first.code < 0xf0 ? 2 : 3;
  let { code, next } = { code: first.code & (0x3f >> n), next: first.next };
  for (let i = 0; i < n; i++) {
    const more = percentByte(text, next);
    if (more === OPEN || more === undefined) return more;
    ({ next } = more);
    code = (code << 6) | (more.code & 0x3f);
  }
  return { code, next };
};

const READERS: readonly ReadLetter[] = [percent, entity, slashed, plain];

const slashedOrPlain: ReadLetter = (text, at) => (text[at] === 0x5c ? slashed(text, at) : plain(text, at));

const anyButPercent: ReadLetter = (text, at) => {
  const letter = text[at] === 0x26 || text[at] === 0x5c ? entity(text, at) : undefined;
  return letter ?? slashedOrPlain(text, at);
};

const percentByte: ReadLetter = (text, at) => {
  const sign = anyButPercent(text, at);
  if (sign === OPEN) return OPEN;
  return sign?.code === 0x25 ? hex(text, sign.next, 2, anyButPercent) : undefined;
};

function named(name: string, next: number): Letter | undefined {
  const code = name.startsWith("#") ? Number(name.slice(1).replace(/^x/i, "0x")) : ENTITIES[name]?.codePointAt(0);
  return code === undefined || Number.isNaN(code) ? undefined : { code, next };
}

function hex(text: Uint8Array, at: number, n: number, read: ReadLetter): Letter | typeof OPEN | undefined {
  let code = 0;
  let next = at;
  for (let i = 0; i < n; i++) {
    const letter = read(text, next);
    if (letter === OPEN || letter === undefined) return letter;
    const digit = letter.code < 0x80 ? parseInt(String.fromCharCode(letter.code), 16) : NaN;
    if (Number.isNaN(digit)) return undefined;
    code = code * 16 + digit;
    ({ next } = letter);
  }
  return { code, next };
}

/** Where the rest of a needle ends, whose first character ended at `at`. */
function endOf(needle: Needle, text: Uint8Array, at: number, isWhole: boolean): number {
  for (let n = 1; n < needle.length; n++) {
    const next = nextOf(needle[n]!, text, at, isWhole);
    if (next < 0) return next;
    at = next;
  }
  return at;
}

/** Where this character ends, if it is the next one in any notation. */
function nextOf(code: number, text: Uint8Array, at: number, isWhole: boolean): number {
  const byte = text[at];
  // The usual cases: another character, or the same, neither of them escaped.
  if (byte !== undefined && byte < 0x80 && byte !== 0x25 && byte !== 0x26 && byte !== 0x5c) return byte === code ? at + 1 : NONE;
  for (const read of READERS) {
    const letter = read(text, at);
    if (letter === OPEN && !isWhole) return OPEN;
    if (letter !== OPEN && letter?.code === code) return letter.next;
  }
  return NONE;
}
