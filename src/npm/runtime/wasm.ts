// The only file that uses the glue: loads the wasm once per realm, and has one active instance of it.

import { SEAL, instantiate } from "../core.js";
import { LockgateError } from "../errors.js";
import { Instance } from "./instance.js";

export type { Instance, Pollable } from "./instance.js";

/** The compiled wasm: the part for the start, and the rest. */
export interface Wasm {
  /** The whole wasm, or the part with which a page starts. */
  readonly module: WebAssembly.Module;
  /** The rest, synchronously. Only the first part asks for it. */
  rest(): WebAssembly.Module;
  /** Resolves when the rest is loaded, so that no code has to wait for it later. */
  whole(): Promise<void>;
}

/** Gets the compiled wasm in the way of this host. */
export type Load = () => WebAssembly.Module | Wasm | Promise<WebAssembly.Module | Wasm>;

/** The wasm of this realm, with one active instance. */
export interface Engine {
  /** Resolves when the whole wasm is loaded, for callers that will need more than the first part. */
  whole(): Promise<void>;
  /** The active instance. It is a new one if the last one has crashed or was too large. */
  instance(): Instance;
}

/**
 * An instance with more memory than this is replaced when no task is open, because wasm memory never shrinks. An edge
 * worker has 128 MB.
 */
const RECYCLE_BYTES = 48 << 20;

/** An instance that exceeds the limit after so few tasks needs that much memory, so the limit is doubled. */
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

/** Loads the wasm synchronously, on hosts that can do that. */
export function loadEngineNow(load: () => WebAssembly.Module): Engine {
  return (engine ??= engineOf(known() ?? inOne(proved(load()))));
}

/**
 * The build of a compiled module if it differs from this JavaScript's build, else null. A bundler, a cache or a person
 * may have supplied another file.
 */
export function strangeSeal(module: WebAssembly.Module): string | null {
  const [section] = WebAssembly.Module.customSections(module, "lockgate");
  const seal = section === undefined ? "unknown" : new TextDecoder().decode(section);
  return seal === SEAL ? null : seal;
}

/** The error for a module of another build. */
export function strange(seal: string, where = ""): LockgateError {
  const message = `the wasm is of build ${seal}, and this JavaScript of build ${SEAL}${where === "" ? "" : `: ${where}`}`;
  return new LockgateError("ENGINE_LOAD", message, { hint: "serve the core.wasm of the same version, and clear caches that keep an old file" });
}

/** Whether a policy of the page or the host forbids to compile or to start wasm. The words differ between browsers. */
export function isForbidden(cause: unknown): boolean {
  return /content security policy|unsafe-eval|blocked by csp|disallowed by embedder/i.test(String(cause));
}

/** The error for wasm that a policy forbids. */
export function forbidden(message: string, cause: unknown): LockgateError {
  const hint = "allow script-src 'wasm-unsafe-eval' in the Content-Security-Policy; in an edge worker import lockgate itself";
  return new LockgateError("ENGINE_LOAD", message, { hint, cause });
}

// Two copies of the package in one realm, or two entries bundled separately, share the compiled module of their build.
const REALM = Symbol.for("lockgate.modules");

function modules(): Map<string, Wasm | Promise<Wasm>> {
  const realm = globalThis as { [REALM]?: Map<string, Wasm | Promise<Wasm>> };
  return (realm[REALM] ??= new Map());
}

function known(): Wasm | undefined {
  const wasm = modules().get(SEAL);
  return wasm === undefined || "then" in wasm ? undefined : wasm;
}

async function wasmOf(load: Load): Promise<Wasm> {
  const all = modules();
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

/** The whole wasm in one module. */
function inOne(module: WebAssembly.Module): Wasm {
  return { module, rest: () => module, whole: async () => undefined };
}

function proved(module: WebAssembly.Module): WebAssembly.Module {
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal);
  return module;
}

/** A new instance. WebKit compiles wasm under any policy, and refuses to start it. */
function started(wasm: Wasm, onIdle: (instance: Instance) => void): Instance {
  try {
    return new Instance(instantiate, wasm, onIdle);
  } catch (cause) {
    if (LockgateError.isInstance(cause)) throw cause;
    if (isForbidden(cause)) throw forbidden("starting wasm is forbidden here", cause);
    const message = `the wasm could not be started: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new LockgateError("ENGINE_LOAD", message, { hint: "try again: the device may be out of memory", cause });
  }
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
      if (!current?.alive) current = started(wasm, onIdle);
      return current;
    },
  };
  return engine;
}
