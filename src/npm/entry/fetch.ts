// Fetching the wasm, with an error that names the address and the likely fix.

import { LockgateError } from "../errors.js";

/** The compiled module at an address. */
export async function fetchModule(url: URL): Promise<WebAssembly.Module> {
  const failed = (what: string, hint: string, cause?: unknown): LockgateError =>
    new LockgateError("ENGINE_LOAD", `${what}: ${url.href}`, { hint, cause });
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin" });
  } catch (cause) {
    throw failed("the wasm cannot be fetched", "check that the file is served, and the CSP's connect-src", cause);
  }
  if (!response.ok) throw failed(`the wasm cannot be fetched (HTTP ${response.status})`, "serve core.wasm beside the package's JavaScript");
  const bytes = await response.arrayBuffer();
  const magic = new Uint8Array(bytes.slice(0, 4));
  if (magic.join() !== "0,97,115,109") {
    throw failed("what is served there is not wasm", "a dev server may answer with a page: exclude lockgate from its pre-bundling");
  }
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    throw failed("the wasm cannot be compiled", "under a CSP allow script-src 'wasm-unsafe-eval'", cause);
  }
}
