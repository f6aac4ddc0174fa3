// Reads what the linker knows about the data of a wasm file: where each object is, and which objects point to which.
import { Reader, sectionsOf, segmentsOf } from "./sections.mjs";

// Kinds of relocation: a slot of the function table in code and in data, and addresses of data.
const SLOT_IN_CODE = 1;
const SLOT_IN_DATA = 2;
const ADDRESSES = new Set([3, 4, 5]);
// The kinds of relocation that have an addend.
const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 22, 23]);

/**
 * The data objects of a file that was linked with `--emit-relocs`:
 * - `objects`: a list of `{ start, size, points, slots }`. `points` has the numbers of the objects that the object points to,
 *   `slots` the slots of the function table that it names;
 * - `pinned`: the numbers of objects that are reached by an address outside of them. A search for addresses would miss them;
 * - `slotsInCode`: the slots that code names.
 */
export function readObjects(bytes) {
  const sections = sectionsOf(bytes);
  const named = (name) => sections.find((section) => section.name === name);
  const of = (id) => sections.find((section) => section.id === id);
  const segments = segmentsOf(of(11).body);
  const { objects, bySymbol } = symbolsOf(named("linking").body, segments);
  const inCode = relocationsOf(named("reloc.CODE").body);
  const inData = relocationsOf(named("reloc.DATA").body);
  const pinned = new Set();
  for (const { kind, symbol, addend } of [...inCode, ...inData]) {
    const number = bySymbol.get(symbol);
    if (!ADDRESSES.has(kind) || number === undefined) continue;
    if (addend < 0 || addend >= objects[number].size) pinned.add(number);
  }
  const holders = within(objects);
  for (const { kind, at, symbol } of inData) {
    const segment = segments.find((it) => it.at <= at && at < it.at + it.bytes.length);
    const address = segment.address + at - segment.at;
    for (const number of holders(address)) {
      if (kind === SLOT_IN_DATA) objects[number].slots.push(segment.bytes.readUInt32LE(at - segment.at));
      else if (bySymbol.has(symbol)) objects[number].points.push(bySymbol.get(symbol));
    }
  }
  const code = of(10).body;
  const slotsInCode = inCode.filter(({ kind }) => kind === SLOT_IN_CODE).map(({ at }) => new Reader(code, at).signed());
  return { objects, pinned, slotsInCode: new Set(slotsInCode), segments };
}

/** Returns a function that finds the numbers of the objects that contain an address. */
export function within(objects) {
  const sorted = objects.map((object, number) => ({ ...object, number })).sort((one, other) => one.start - other.start);
  const longest = Math.max(0, ...sorted.map(({ size }) => size));
  return (address) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle].start <= address) low = middle + 1;
      else high = middle;
    }
    const found = [];
    for (let n = low - 1; n >= 0 && sorted[n].start > address - longest - 1; n -= 1) {
      if (address < sorted[n].start + Math.max(1, sorted[n].size)) found.push(sorted[n].number);
    }
    return found;
  };
}

function symbolsOf(linking, segments) {
  const objects = [];
  const bySymbol = new Map();
  const reader = new Reader(linking);
  reader.number();
  while (reader.at < linking.length) {
    const kind = reader.byte();
    const end = reader.number() + reader.at;
    if (kind === 8) {
      const count = reader.number();
      for (let symbol = 0; symbol < count; symbol += 1) {
        const place = symbolAt(reader);
        if (place === null) continue;
        bySymbol.set(symbol, objects.length);
        objects.push({ start: segments[place.segment].address + place.offset, size: place.size, points: [], slots: [] });
      }
    }
    reader.at = end;
  }
  return { objects, bySymbol };
}

// The place of the next symbol, or null if the symbol is not data.
function symbolAt(reader) {
  const kind = reader.byte();
  const flags = reader.number();
  const isUndefined = (flags & 0x10) !== 0;
  const isNamed = (flags & 0x40) !== 0;
  if (kind === 1) {
    reader.text();
    return isUndefined ? null : { segment: reader.number(), offset: reader.number(), size: reader.number() };
  }
  reader.number();
  if (kind !== 3 && (!isUndefined || isNamed)) reader.text();
  return null;
}

function relocationsOf(body) {
  const reader = new Reader(body);
  reader.number();
  return Array.from({ length: reader.number() }, () => {
    const [kind, at, symbol] = [reader.byte(), reader.number(), reader.number()];
    return { kind, at, symbol, addend: WITH_ADDEND.has(kind) ? reader.signed() : 0 };
  });
}
