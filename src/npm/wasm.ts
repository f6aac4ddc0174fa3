// The only file that touches the glue: loads the wasm once per realm, and keeps one instance of it at work.

import { SEAL, instantiate } from "./core.js";
import { LockgateError } from "./errors.js";
import { Instance } from "./instance.js";

export type { Instance, Pollable } from "./instance.js";

/** Gets the compiled module, however this host does that. */
export type Load = () => WebAssembly.Module | Promise<WebAssembly.Module>;

/** The wasm of this realm: one module, and one instance at a time. */
export interface Engine {
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
  loading ??= moduleOf(load).then(engineOf).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** The same at once, where the host can do that. */
export function loadEngineNow(load: () => WebAssembly.Module): Engine {
  return (engine ??= engineOf(known() ?? proved(load())));
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

function shelf(): Map<string, WebAssembly.Module | Promise<WebAssembly.Module>> {
  const realm = globalThis as { [REALM]?: Map<string, WebAssembly.Module | Promise<WebAssembly.Module>> };
  return (realm[REALM] ??= new Map());
}

function known(): WebAssembly.Module | undefined {
  const module = shelf().get(SEAL);
  return module instanceof WebAssembly.Module ? module : undefined;
}

async function moduleOf(load: Load): Promise<WebAssembly.Module> {
  const modules = shelf();
  const found = modules.get(SEAL) ?? loaded(load);
  modules.set(SEAL, found);
  try {
    const module = await found;
    modules.set(SEAL, module);
    return module;
  } catch (error) {
    if (modules.get(SEAL) === found) modules.delete(SEAL);
    throw error;
  }
}

async function loaded(load: Load): Promise<WebAssembly.Module> {
  try {
    return proved(await load());
  } catch (cause) {
    if (LockgateError.isInstance(cause)) throw cause;
    const message = `the wasm could not be loaded: ${cause instanceof Error ? cause.message : String(cause)}`;
    const hint = "serve core.wasm beside the package's JavaScript; under a CSP allow script-src 'wasm-unsafe-eval'";
    throw new LockgateError("ENGINE_LOAD", message, { hint, cause });
  }
}

function proved(module: WebAssembly.Module): WebAssembly.Module {
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal);
  return module;
}

function engineOf(module: WebAssembly.Module): Engine {
  let current: Instance | undefined;
  let limit = RECYCLE_BYTES;
  const onIdle = (instance: Instance): void => {
    if (instance.bytes <= limit || !instance.retire()) return;
    if (instance.nTasks < FEW_TASKS) limit *= 2;
  };
  engine ??= {
    instance() {
      if (!current?.alive) current = new Instance(instantiate, module, onIdle);
      return current;
    },
  };
  return engine;
}
