// Splits the wasm into two files: the functions that a page needs to start, and the rest, which is fetched afterwards.
import { problem } from "../run.mjs";
import { within } from "./objects.mjs";

/** The module names of imports: from the first part, and from the glue. */
const PAGE = "page";
const GLUE = "lockgate";

/**
 * Splits a module. Returns `{ page, rest }`, each as `{ wasm, data }`; the caller adds the data (`withData`) after it has shrunk the
 * wasm. `isHot(name)` says which functions are in the first part. `data` is the result of `readObjects`.
 *
 * If the first part uses a function of the rest, it has a stub for the function. The stub asks the glue for the rest if the rest
 * is missing, and then calls the function through a table that the rest fills. So `isHot` decides only how soon the rest is needed,
 * never what the module does. Data that only the rest uses is in the rest.
 */
export function split(binaryen, bytes, isHot, data) {
  const read = () => binaryen.readBinary(bytes);
  const whole = read();
  const functions = functionsOf(binaryen, whole).filter((it) => it.base === "");
  const cold = functions.filter(({ name }) => !isHot(name));
  if (cold.length === 0 || cold.length === functions.length)
    throw problem("The profile fits no function of the wasm: make it anew with `npm run profile`.");
  const needs = needsOf(binaryen, read(), { functions, cold, data });
  const stubs = new Map(needs.stubs.map((name, slot) => [name, slot]));
  const { rest, shared } = restOf(binaryen, read(), { functions, isHot, stubs, needs });
  const page = pageOf(binaryen, whole, { cold, stubs, shared, needs });
  const { pageData, restData } = needs;
  return { page: { wasm: page, data: pageData }, rest: { wasm: rest, data: restData } };
}

/** The module with a call of `lockgate.hit(number)` at the start of every function, and the names of the functions by number. */
export function instrumented(binaryen, bytes) {
  const module = binaryen.readBinary(bytes);
  module.addFunctionImport("hit", GLUE, "hit", binaryen.i32, binaryen.none);
  const names = [];
  for (const { name, base, results, body } of functionsOf(binaryen, module)) {
    if (base !== "") continue;
    const hit = module.call("hit", [module.i32.const(names.length)], binaryen.none);
    binaryen.Function(module.getFunction(name)).body = module.block(null, [hit, body], results);
    names.push(name);
  }
  return { wasm: Buffer.from(module.emitBinary()), names };
}

function functionsOf(binaryen, module) {
  return Array.from({ length: module.getNumFunctions() }, (_, n) => binaryen.getFunctionInfo(module.getFunctionByIndex(n)));
}

const infos = (count, at, info) => Array.from({ length: count }, (_, n) => info(at(n)));
const tablesOf = (binaryen, module) => infos(module.getNumTables(), (n) => module.getTableByIndex(n), binaryen.getTableInfo);
const globalsOf = (binaryen, module) => infos(module.getNumGlobals(), (n) => module.getGlobalByIndex(n), binaryen.getGlobalInfo);
const exportsOf = (binaryen, module) => infos(module.getNumExports(), (n) => module.getExportByIndex(n), binaryen.getExportInfo);
const elementsOf = (binaryen, module) => infos(module.getNumElementSegments(), (n) => module.getElementSegmentByIndex(n), binaryen.getElementSegmentInfo);

/** What the first part uses: the cold functions that need a stub, the data, and its function table. */
function needsOf(binaryen, module, { functions, cold, data }) {
  const names = new Set(cold.map(({ name }) => name));
  for (const { name, params, results } of cold) {
    module.removeFunction(name);
    module.addFunctionImport(name, PAGE, name, params, results);
  }
  const table = tableOf(binaryen, module);
  // The cold functions that data uses are found below.
  module.removeElementSegment(table.segment);
  // The rest may call any hot function.
  for (const { name } of functions.filter((it) => !names.has(it.name))) module.addFunctionExport(name, `hot ${name}`);
  module.runPasses(["remove-unused-module-elements"]);
  const hotData = reached(module.emitText(), data);
  const hotSlots = new Set(data.slotsInCode);
  const known = new Set(data.slotsInCode);
  data.objects.forEach(({ slots }, number) => {
    slots.forEach((slot) => known.add(slot));
    if (hotData.has(number)) slots.forEach((slot) => hotSlots.add(slot));
  });
  const isNeeded = (slot) => hotSlots.has(slot) || !known.has(slot);
  const called = functionsOf(binaryen, module).filter(({ name }) => names.has(name)).map(({ name }) => name);
  const pointed = table.names.filter((name, n) => names.has(name) && isNeeded(table.first + n));
  const isColdSlot = (n) => names.has(table.names[n]);
  const isIdleSlot = (n) => isColdSlot(n) && !isNeeded(table.first + n);
  module.dispose();
  return { stubs: [...new Set([...called, ...pointed])].sort(), table, isColdSlot, isIdleSlot, ...dataParts(data, hotData) };
}

// The only segment of the function table. All calls by pointer use this table.
function tableOf(binaryen, module) {
  const segments = elementsOf(binaryen, module).filter(({ data }) => data.length > 0);
  if (segments.length !== 1) throw problem(`The wasm fills its function table in ${segments.length} places: adapt src/build/wasm/split.mjs.`);
  const [{ name, table, offset, data }] = segments;
  return { segment: name, name: table, first: binaryen.getExpressionInfo(offset).value, names: data };
}

/** The numbers of the objects whose addresses are in the code, and of all objects that these point to. */
function reached(text, { objects, pinned, segments }) {
  const low = Math.min(...segments.map(({ address }) => address));
  const holders = within(objects);
  const found = new Set(pinned);
  for (const [, constant, offset] of text.matchAll(/i32\.const (\d+)|offset=(\d+)/g)) {
    const address = Number(constant ?? offset);
    if (address >= low) holders(address).forEach((number) => found.add(number));
  }
  const open = [...found];
  while (open.length > 0) {
    for (const number of objects[open.pop()].points) {
      if (!found.has(number)) open.push(number);
      found.add(number);
    }
  }
  return found;
}

/** The bytes that the first part needs, and the bytes that come with the rest: `{ address, bytes }`. */
function dataParts({ objects, segments }, hotData) {
  const isCold = segments.map(({ bytes }) => new Uint8Array(bytes.length));
  const mark = (value) => ({ start, size }) => {
    const n = segments.findIndex(({ address, bytes }) => address <= start && start + size <= address + bytes.length);
    isCold[n]?.fill(value, start - segments[n].address, start - segments[n].address + size);
  };
  objects.forEach(mark(1));
  objects.filter((_, number) => hotData.has(number)).forEach(mark(0));
  const parts = (chosen) =>
    segments.flatMap(({ address, bytes }, n) =>
      runsOf(bytes.length, (at) => chosen(isCold[n][at] === 1, bytes[at])).map(([from, to]) => ({
        address: address + from,
        bytes: bytes.subarray(from, to),
      })),
    );
  // New memory is all zeroes, so the first part need not write them. The rest may write only its own bytes: the memory is in use.
  return { pageData: joined(parts((cold, byte) => !cold && byte !== 0)), restData: parts((cold) => cold) };
}

// A new segment costs about as many bytes as this many zeroes.
const GAP = 8;

/** Joins segments that are close to each other. */
function joined(segments) {
  const all = [];
  for (const { address, bytes } of segments) {
    const last = all.at(-1);
    const gap = last === undefined ? Infinity : address - last.address - last.bytes.length;
    if (gap > GAP) all.push({ address, bytes });
    else last.bytes = Buffer.concat([last.bytes, Buffer.alloc(gap), bytes]);
  }
  return all;
}

/** The ranges `[from, to]` of numbers below `length` for which `is` returns true. `to` is the number after the range. */
function runsOf(length, is) {
  const runs = [];
  for (let n = 0; n < length; n += 1) {
    if (!is(n)) continue;
    if (runs.at(-1)?.[1] === n) runs.at(-1)[1] = n + 1;
    else runs.push([n, n + 1]);
  }
  return runs;
}

// `withData` adds the data to the finished part, so binaryen does not have to process it.
function withoutData(module) {
  const { initial, max } = module.getMemoryInfo();
  module.setMemory(initial, max ?? 65536, null, []);
}

function pageOf(binaryen, module, { cold, stubs, shared, needs }) {
  const none = binaryen.none;
  module.addFunctionImport("fetch-rest", GLUE, "rest", none, none);
  module.addGlobal("is-whole", binaryen.i32, true, module.i32.const(0));
  module.addGlobalExport("is-whole", "$whole");
  const isPart = module.i32.eqz(module.global.get("is-whole", binaryen.i32));
  module.addFunction("have-rest", none, none, [], module.if(isPart, module.call("fetch-rest", [], none)));
  module.addTable("cold", stubs.size, stubs.size);
  module.addTableExport("cold", "$cold");
  for (const { name, params, results } of cold) {
    module.removeFunction(name);
    if (!stubs.has(name)) continue;
    const given = binaryen.expandType(params).map((type, n) => module.local.get(n, type));
    const passOn = module.call_indirect("cold", module.i32.const(stubs.get(name)), given, params, results);
    const body = [module.call("have-rest", [], none), passOn];
    module.addFunction(name, params, results, [], module.block(null, body, results));
  }
  const { table } = needs;
  module.removeElementSegment(table.segment);
  const names = table.names.map((name, n) => (needs.isIdleSlot(n) ? "have-rest" : name));
  module.addActiveElementSegment(table.name, table.segment, names, module.i32.const(table.first));
  shared.functions.forEach((name, n) => module.addFunctionExport(name, String(n)));
  for (const name of shared.tables) module.addTableExport(name, `$table${name}`);
  for (const name of shared.globals) module.addGlobalExport(name, `$global${name}`);
  withoutData(module);
  return emitted(module);
}

function restOf(binaryen, module, { functions, isHot, stubs, needs }) {
  for (const { name } of exportsOf(binaryen, module)) module.removeExport(name);
  for (const { name } of elementsOf(binaryen, module)) module.removeElementSegment(name);
  const imports = functions.filter(({ name }) => isHot(name));
  for (const { name, params, results } of imports) {
    module.removeFunction(name);
    module.addFunctionImport(name, PAGE, name, params, results);
  }
  withoutData(module);
  module.addMemoryImport(module.getMemoryInfo().name ?? "0", PAGE, "memory");
  module.addTable("cold", stubs.size, stubs.size);
  module.addTableImport("cold", PAGE, "$cold");
  module.addActiveElementSegment("cold", "cold", [...stubs.keys()], module.i32.const(0));
  const { table } = needs;
  module.addTableImport(table.name, PAGE, `$table${table.name}`);
  for (const [from, to] of runsOf(table.names.length, needs.isColdSlot)) {
    module.addActiveElementSegment(table.name, `slots${from}`, table.names.slice(from, to), module.i32.const(table.first + from));
  }
  module.runPasses(["remove-unused-module-elements"]);
  const names = new Set(functionsOf(binaryen, module).filter((it) => it.module === PAGE).map(({ name }) => name));
  const shared = {
    functions: imports.map(({ name }) => name).filter((name) => names.has(name)),
    tables: tablesOf(binaryen, module).map(({ name }) => name).filter((name) => name !== "cold"),
    globals: globalsOf(binaryen, module).map(({ name }) => name),
  };
  const byName = new Map(imports.map((it) => [it.name, it]));
  shared.functions.forEach((name, n) => {
    const { params, results } = byName.get(name);
    module.addFunctionImport(name, PAGE, String(n), params, results);
  });
  for (const name of shared.tables) module.addTableImport(name, PAGE, `$table${name}`);
  for (const { name, type, mutable } of globalsOf(binaryen, module)) module.addGlobalImport(name, PAGE, `$global${name}`, type, mutable);
  return { rest: emitted(module), shared };
}

function emitted(module) {
  module.runPasses(["remove-unused-module-elements"]);
  if (!module.validate()) throw problem("A part of the wasm is not valid: see src/build/wasm/split.mjs.");
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}
