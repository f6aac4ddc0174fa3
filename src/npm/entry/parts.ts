// The wasm in two files: a page starts with the first, and the rest comes behind it.

import type { Wasm } from "../wasm.js";
import { compiledNow, failed } from "./compile.js";
import { fetchModule, fetched } from "./fetch.js";

/**
 * The wasm at two addresses. The rest is fetched in the background; what needs it before it is here fetches it at once, in
 * the way of the page. Where that is not possible, both are fetched first. Where the first file is lost, the copy of all
 * the wasm inside the package takes the place of both.
 */
export async function fetchParts(page: URL, rest: URL): Promise<Wasm | WebAssembly.Module> {
  const { module, isCopy } = await fetchModule(page);
  if (isCopy) return module;
  const parts = new Parts(module, rest);
  if (!canFetchNow()) await parts.whole();
  else if (!savesData()) parts.whole().catch(() => undefined);
  return parts;
}

/** How long the rest may take in the background, all in all: `drain` and `close` wait for work that waits for it. */
const PATIENCE_MS = 60_000;

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
    return (this.#rest ??= fetchedNow(this.#address));
  }

  whole(): Promise<void> {
    this.#coming ??= this.#fetch().catch((error: unknown) => {
      this.#coming = undefined;
      throw error;
    });
    return this.#coming;
  }

  async #fetch(): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const quietly = (cache: RequestCache): RequestInit => ({ cache, priority: "low", signal });
    this.#rest ??= await fetched(this.#address, quietly("default")).catch(() => fetched(this.#address, quietly("reload")));
  }
}

/** Whether something can be fetched without waiting: not in service workers, nor where the page forbids it. */
function canFetchNow(): boolean {
  const policy = (globalThis as { document?: { featurePolicy?: { allowsFeature(name: string): boolean } } }).document?.featurePolicy;
  return typeof XMLHttpRequest !== "undefined" && policy?.allowsFeature("sync-xhr") !== false;
}

function savesData(): boolean {
  return (globalThis as { navigator?: { connection?: { saveData?: boolean } } }).navigator?.connection?.saveData === true;
}

function fetchedNow(address: URL): WebAssembly.Module {
  const where = address.href;
  const hint = "the page may be offline: try again when it is not";
  const request = new XMLHttpRequest();
  request.open("GET", where, false);
  // The only way to bytes for who does not wait.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  try {
    request.send();
  } catch (cause) {
    throw failed(`the rest of the wasm cannot be fetched: ${where}`, hint, cause);
  }
  if (request.status !== 200) throw failed(`the rest of the wasm cannot be fetched (HTTP ${request.status}): ${where}`, hint);
  return compiledNow(Uint8Array.from(request.responseText, (char) => char.charCodeAt(0) & 0xff), where);
}
