// Loads the wasm in two files: a page starts with the first file while the rest is fetched.

import type { Wasm } from "../runtime/wasm.js";
import { compileBytesSync, loadError } from "./compile.js";
import { fetchOrCopy, fetchWasm } from "./fetch.js";

/**
 * Loads the wasm from two URLs. The rest is fetched in the background. Code that needs the rest earlier fetches it with a
 * synchronous request, which blocks the page. Where synchronous requests are not possible, both files are fetched first. If
 * the first file is lost, the copy inside the package replaces both.
 */
export async function fetchParts(page: URL, rest: URL): Promise<Wasm | WebAssembly.Module> {
  const { module, isCopy } = await fetchOrCopy(page);
  if (isCopy) return module;
  const parts = new Parts(module, rest);
  if (!canFetchSync()) await parts.whole();
  else if (!savesData()) parts.whole().catch(() => undefined);
  return parts;
}

/** The time limit for fetching the rest in the background. `drain` and `close` wait for work that waits for the rest. */
const FETCH_TIMEOUT_MS = 60_000;

class Parts implements Wasm {
  readonly module: WebAssembly.Module;
  readonly #address: URL;
  #rest: WebAssembly.Module | undefined;
  #coming: Promise<void> | undefined;

  constructor(module: WebAssembly.Module, address: URL) {
    this.module = module;
    this.#address = address;
  }

  rest(): WebAssembly.Module {
    return (this.#rest ??= fetchWasmSync(this.#address));
  }

  whole(): Promise<void> {
    this.#coming ??= this.#fetch().catch((error: unknown) => {
      this.#coming = undefined;
      throw error;
    });
    return this.#coming;
  }

  async #fetch(): Promise<void> {
    const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
    const inBackground = (cache: RequestCache): RequestInit => ({ cache, priority: "low", signal });
    this.#rest ??= await fetchWasm(this.#address, inBackground("default")).catch(() => fetchWasm(this.#address, inBackground("reload")));
  }
}

/** Whether synchronous requests are possible: not in service workers, nor in pages whose policy forbids them. */
function canFetchSync(): boolean {
  const policy = (globalThis as { document?: { featurePolicy?: { allowsFeature(name: string): boolean } } }).document?.featurePolicy;
  return typeof XMLHttpRequest !== "undefined" && policy?.allowsFeature("sync-xhr") !== false;
}

function savesData(): boolean {
  return (globalThis as { navigator?: { connection?: { saveData?: boolean } } }).navigator?.connection?.saveData === true;
}

function fetchWasmSync(address: URL): WebAssembly.Module {
  const where = address.href;
  const hint = "the page may be offline: try again when it is online";
  const request = new XMLHttpRequest();
  request.open("GET", where, false);
  // A synchronous request in a page cannot return bytes: this charset gives one character per byte.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  try {
    request.send();
  } catch (cause) {
    throw loadError(`the rest of the wasm cannot be fetched: ${where}`, hint, cause);
  }
  if (request.status !== 200) throw loadError(`the rest of the wasm cannot be fetched (HTTP ${request.status}): ${where}`, hint);
  return compileBytesSync(Uint8Array.from(request.responseText, (char) => char.charCodeAt(0) & 0xff), where);
}
