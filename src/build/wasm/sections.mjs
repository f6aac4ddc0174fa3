// Reads and writes the parts of wasm files that the build needs: sections, numbers, data segments.

/** The length of the header of a wasm file. */
const HEADER = 8;

/**
 * The sections of a wasm file, in order: `{ id, name, at, body, whole }`. `name` is the name of a custom section, `at` the position
 * of the body, and `whole` the section with its id and length.
 */
export function sectionsOf(bytes) {
  const sections = [];
  const reader = new Reader(bytes, HEADER);
  while (reader.at < bytes.length) {
    const start = reader.at;
    const id = reader.byte();
    const end = reader.number() + reader.at;
    const name = id === 0 ? reader.text() : "";
    sections.push({ id, name, at: reader.at, body: bytes.subarray(reader.at, end), whole: bytes.subarray(start, end) });
    reader.at = end;
  }
  return sections;
}

/** The file without the custom sections for which `drops` is true. */
export function withoutSections(bytes, drops) {
  const kept = sectionsOf(bytes).filter(({ id, name }) => id !== 0 || !drops(name));
  return Buffer.concat([bytes.subarray(0, HEADER), ...kept.map(({ whole }) => whole)]);
}

/** The file with the section bodies that `change` returns. Custom sections stay the same. */
export function withSections(bytes, change) {
  const parts = [bytes.subarray(0, HEADER)];
  const reader = new Reader(bytes, HEADER);
  while (reader.at < bytes.length) {
    const start = reader.at;
    const id = reader.byte();
    const end = reader.number() + reader.at;
    const body = bytes.subarray(reader.at, end);
    const changed = id === 0 ? body : change({ id, body });
    parts.push(changed === body ? bytes.subarray(start, end) : Buffer.concat([Buffer.from([id]), leb(changed.length), changed]));
    reader.at = end;
  }
  return Buffer.concat(parts);
}

/** The segments of a data section: `{ address, at, bytes }`. `at` is the position of the bytes in the body of the section. */
export function segmentsOf(body) {
  const reader = new Reader(body);
  return Array.from({ length: reader.number() }, () => {
    const [flags, constant] = [reader.number(), reader.byte()];
    if (flags !== 0 || constant !== 0x41) throw new Error("a data segment stands at no plain address");
    const address = reader.signed();
    reader.byte();
    const length = reader.number();
    const at = reader.at;
    reader.at += length;
    return { address, at, bytes: body.subarray(at, reader.at) };
  });
}

/** Adds the segments `{ address, bytes }` to a file without data. */
export function withData(wasm, segments) {
  const constant = (number) => Buffer.concat([Buffer.from([0x41]), signedLeb(number), Buffer.from([0x0b])]);
  const parts = segments.map(({ address, bytes }) => Buffer.concat([leb(0), constant(address), leb(bytes.length), bytes]));
  const body = Buffer.concat([leb(segments.length), ...parts]);
  const code = sectionsOf(wasm).find(({ id }) => id === 10);
  const end = code.at + code.body.length;
  return Buffer.concat([wasm.subarray(0, end), Buffer.from([11]), leb(body.length), body, wasm.subarray(end)]);
}

function signedLeb(number) {
  const bytes = [];
  for (let rest = number; ; ) {
    const low = rest & 0x7f;
    rest >>= 7;
    if ((rest === 0 && !(low & 0x40)) || (rest === -1 && low & 0x40)) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

/** An unsigned LEB128 number, as WebAssembly writes lengths. */
export function leb(number) {
  const bytes = [];
  for (let rest = number; ; ) {
    const low = rest & 0x7f;
    rest >>>= 7;
    if (rest === 0) return Buffer.from([...bytes, low]);
    bytes.push(low | 0x80);
  }
}

/** Reads the values of a wasm file one after the other. */
export class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte() {
    return this.bytes[this.at++];
  }

  number() {
    return this.#variable().value >>> 0;
  }

  signed() {
    const { value, bits, last } = this.#variable();
    return bits < 32 && last & 0x40 ? value | (-1 << bits) : value | 0;
  }

  text() {
    const length = this.number();
    this.at += length;
    return Buffer.from(this.bytes.subarray(this.at - length, this.at)).toString("utf8");
  }

  #variable() {
    let [value, bits, last] = [0, 0, 0];
    do {
      last = this.byte();
      value |= (last & 0x7f) << bits;
      bits += 7;
    } while (last & 0x80);
    return { value, bits, last };
  }
}
