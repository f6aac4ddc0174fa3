// lockgate/slim: everything but a way to load the wasm, for whoever serves, embeds or compiles it in their own way.

import { createAgentWith } from "../agent.js";
import { LockgateError } from "../errors.js";
import type * as Public from "../index.js";
import { indexedDbWith } from "../indexed-db.js";
import { localStorageWith } from "../local-storage.js";
import { memoryStore as memory } from "../memory.js";
import { loadEngine } from "../wasm.js";
import { compiled } from "./compile.js";
import { answered, fetched } from "./fetch.js";

export * from "../index.js";

/** A compiled module, also in projects whose compiler knows no WebAssembly. */
type Compiled = typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : object;

/** The wasm, in any form it can be had in. */
export type WasmSource = Compiled | ArrayBuffer | ArrayBufferView | Response | URL | string;

let given: WasmSource | PromiseLike<WasmSource> | undefined;

/**
 * Says where the wasm is: bytes, a compiled module, a Response, or an address; `core.wasm` is `lockgate/core.wasm`, and must
 * be of this version. Waits until it is loaded. Before it, `createAgent` rejects with ENGINE_LOAD.
 */
export async function init(source: WasmSource | PromiseLike<WasmSource>): Promise<void> {
  given = source;
  await loadEngine(load);
}

async function load(): Promise<WebAssembly.Module> {
  if (given === undefined) {
    throw new LockgateError("ENGINE_LOAD", "no wasm was given", { hint: "await init(…) with lockgate/core.wasm first, or import lockgate instead of lockgate/slim" });
  }
  const source = await given;
  if (source instanceof WebAssembly.Module) return source;
  if (typeof Response !== "undefined" && source instanceof Response) return answered(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return compiled(source, "the given bytes");
  if (typeof source === "string" || source instanceof URL) return fetched(addressed(source));
  throw new LockgateError("ENGINE_LOAD", "what was given is no wasm", { hint: "give bytes, a WebAssembly.Module, a Response or an address" });
}

function addressed(address: string | URL): URL {
  try {
    return new URL(address, (globalThis as { location?: { href: string } }).location?.href);
  } catch (cause) {
    throw new LockgateError("ENGINE_LOAD", `this is no address: ${String(address)}`, { hint: "outside of a page give a whole address", cause });
  }
}

/** As in `lockgate`. */
export const indexedDbStore: typeof Public.indexedDbStore = indexedDbWith(load);

/** As in `lockgate`. */
export const localStorageStore: typeof Public.localStorageStore = localStorageWith(load);

/** As in `lockgate`, once `init` was called; without a `store`, sessions are in IndexedDB, or where there is none in memory. */
export const createAgent: typeof Public.createAgent = createAgentWith(load, () => ("indexedDB" in globalThis ? indexedDbStore() : memory()));
