// lockgate/slim: the package without a way to load the wasm, for users who serve, embed or compile it themselves.

import { createAgentWith } from "../agent/create.js";
import { LockgateError } from "../errors.js";
import type * as Public from "../index.js";
import { indexedDbWith } from "../stores/indexed-db.js";
import { localStorageWith } from "../stores/local-storage.js";
import { guardedBy } from "../runtime/ending.js";
import { exitSignals } from "../runtime/process-signals.js";
import { memoryStore as memory } from "../stores/memory.js";
import { loadEngine } from "../runtime/wasm.js";
import { compileBytes } from "./compile.js";
import { compileResponse, fetchWasm } from "./fetch.js";

export * from "../index.js";

/** A compiled module. Works also in TypeScript projects without the types of WebAssembly. */
type Compiled = typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : object;

/** The wasm: bytes, a compiled module, a response, or a URL. */
export type WasmSource = Compiled | ArrayBuffer | ArrayBufferView | Response | URL | string;

let given: WasmSource | PromiseLike<WasmSource> | undefined;

/**
 * Loads the wasm from bytes, a compiled module, a Response or a URL. The file is `lockgate/core.wasm` of the same version.
 * Before `init` was called, `createAgent` rejects with ENGINE_LOAD.
 */
export async function init(source: WasmSource | PromiseLike<WasmSource>): Promise<void> {
  given = source;
  await loadEngine(load);
}

async function load(): Promise<WebAssembly.Module> {
  if (given === undefined) {
    throw new LockgateError("ENGINE_LOAD", "lockgate/slim has no wasm yet", { hint: "call await init(…) with lockgate/core.wasm first, or import lockgate instead of lockgate/slim" });
  }
  const source = await given;
  if (source instanceof WebAssembly.Module) return source;
  if (typeof Response !== "undefined" && source instanceof Response) return compileResponse(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return compileBytes(source, "the given bytes");
  if (typeof source === "string" || source instanceof URL) return fetchWasm(urlOf(source));
  throw new LockgateError("ENGINE_LOAD", "init got a value that is not wasm", { hint: "pass bytes, a WebAssembly.Module, a Response or a URL" });
}

function urlOf(address: string | URL): URL {
  try {
    return new URL(address, (globalThis as { location?: { href: string } }).location?.href);
  } catch (cause) {
    throw new LockgateError("ENGINE_LOAD", `init got an invalid URL: ${String(address)}`, { hint: "outside of a page the URL must be absolute", cause });
  }
}

/** As in `lockgate`. */
export const indexedDbStore: typeof Public.indexedDbStore = indexedDbWith(load);

/** As in `lockgate`. */
export const localStorageStore: typeof Public.localStorageStore = localStorageWith(load);

/** As in `lockgate`, after `init`. Without a `store`, sessions are kept in IndexedDB, or in memory if there is no IndexedDB. */
export const createAgent: typeof Public.createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memory()), guardedBy(exitSignals()));
