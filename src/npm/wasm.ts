// The only file that touches the glue: loads the wasm once per realm, and keeps one instance of it at work.

import { SEAL, instantiate } from "./core.js";
import { LockgateError } from "./errors.js";
import { Instance } from "./instance.js";

export type { Instance, Pollable } from "./instance.js";

/** The compiled wasm: what instances begin with, and what they may need later. */
export interface Wasm {
  /** All of it, or the part that a page starts with. */
  readonly module: WebAssembly.Module;
  /** The other part, at once; only a first part asks for it. */
  rest(): WebAssembly.Module;
  /** Comes when the rest is here, so that nobody must wait for it. */
  whole(): Promise<void>;
}

/** Gets the compiled wasm, however this host does that. */
export type Load = () => WebAssembly.Module | Wasm | Promise<WebAssembly.Module | Wasm>;

/** The wasm of this realm, and one instance of it at a time. */
export interface Engine {
  /** Comes when all of the wasm is here: for whoever is sure to need more than a page starts with. */
  whole(): Promise<void>;
  /** The instance that works now; a fresh one if the last has crashed, or had grown too large. */
  instance(): Instance;
}

/** Over so much memory an instance is replaced when nothing is open in it: wasm memory never shrinks. An edge worker has 128 MB. */
const RECYCLE_BYTES = 48 << 20;

/** An instance that is over the limit after so few tasks needs that much: replacing it each time would only cost. */
const FEW_TASKS = 100;

let engine: Engine | undefined;
let loading: Promise<Engine> | undefined;

/** Loads the wasm, once per realm. */
export function loadEngine(load: Load): Promise<Engine> {
  loading ??= wasmOf(load).then(engineOf).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** The same at once, where the host can do that. */
export function loadEngineNow(load: () => WebAssembly.Module): Engine {
  return (engine ??= engineOf(known() ?? inOne(proved(load()))));
}

/** The build that a compiled module says it is of, or null: a bundler, a cache or a person may have brought another file. */
export function strangeSeal(module: WebAssembly.Module): string | null {
  const [section] = WebAssembly.Module.customSections(module, "lockgate");
  const seal = section === undefined ? "unknown" : new TextDecoder().decode(section);
  return seal === SEAL ? null : seal;
}

/** The error for a module of another build. */
export function strange(seal: string, where = ""): LockgateError {
  const message = `the wasm is of build ${seal}, and this JavaScript of build ${SEAL}${where === "" ? "" : `: ${where}`}`;
  return new LockgateError("ENGINE_LOAD", message, { hint: "serve the core.wasm of the same version, and empty caches that keep an old one" });
}

// Two copies of the package in one realm, or two of its entries bundled apart, share the compiled module of their build.
const REALM = Symbol.for("lockgate.modules");

function shelf(): Map<string, Wasm | Promise<Wasm>> {
  const realm = globalThis as { [REALM]?: Map<string, Wasm | Promise<Wasm>> };
  return (realm[REALM] ??= new Map());
}

function known(): Wasm | undefined {
  const wasm = shelf().get(SEAL);
  return wasm === undefined || "then" in wasm ? undefined : wasm;
}

async function wasmOf(load: Load): Promise<Wasm> {
  const all = shelf();
  const found = all.get(SEAL) ?? loaded(load);
  all.set(SEAL, found);
  try {
    const wasm = await found;
    all.set(SEAL, wasm);
    return wasm;
  } catch (error) {
    if (all.get(SEAL) === found) all.delete(SEAL);
    throw error;
  }
}

async function loaded(load: Load): Promise<Wasm> {
  try {
    const wasm = await load();
    return wasm instanceof WebAssembly.Module ? inOne(proved(wasm)) : wasm;
  } catch (cause) {
    if (LockgateError.isInstance(cause)) throw cause;
    const message = `the wasm could not be loaded: ${cause instanceof Error ? cause.message : String(cause)}`;
    const hint = "serve core.wasm beside the package's JavaScript; under a CSP allow script-src 'wasm-unsafe-eval'";
    throw new LockgateError("ENGINE_LOAD", message, { hint, cause });
  }
}

/** All of it in one module. */
function inOne(module: WebAssembly.Module): Wasm {
  return { module, rest: () => module, whole: async () => undefined };
}

function proved(module: WebAssembly.Module): WebAssembly.Module {
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal);
  return module;
}

function engineOf(wasm: Wasm): Engine {
  let current: Instance | undefined;
  let limit = RECYCLE_BYTES;
  const onIdle = (instance: Instance): void => {
    if (instance.bytes <= limit || !instance.retire()) return;
    if (instance.nTasks < FEW_TASKS) limit *= 2;
  };
  engine ??= {
    whole: () => wasm.whole(),
    instance() {
      if (!current?.alive) current = new Instance(instantiate, wasm, onIdle);
      return current;
    },
  };
  return engine;
}
