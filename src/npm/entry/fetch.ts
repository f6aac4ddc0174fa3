// Fetches the wasm. Errors name the URL and the likely fix.

import { isForbidden } from "../runtime/wasm.js";
import { checkCompiled, compileBytes, compileInline, loadError } from "./compile.js";

/**
 * Fetches and compiles the wasm at a URL. A file of another build may come from a cache, so it is fetched once more without
 * the cache. Some dev servers and bundlers lose the file: then the copy inside the package is used.
 */
export async function fetchOrCopy(url: URL): Promise<{ readonly module: WebAssembly.Module; readonly isCopy: boolean }> {
  try {
    const again = (error: Error): Promise<WebAssembly.Module> => (isForbidden(error.cause) ? Promise.reject(error) : fetchWasm(url, { cache: "reload" }));
    return { module: await fetchWasm(url).catch(again), isCopy: false };
  } catch (error) {
    if (isForbidden((error as Error).cause)) throw error;
    // If the copy fails too, the error of the file is more useful.
    const copy = await compileInline().catch(() => {
      throw error;
    });
    return { module: copy, isCopy: true };
  }
}

/** Fetches and compiles the wasm at a URL, without a fallback. */
export async function fetchWasm(url: URL, how: RequestInit = {}): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...how });
  } catch (cause) {
    throw loadError(`the wasm cannot be fetched: ${url.href}`, "check that the file is served, and the CSP's connect-src; or import lockgate/inline", cause);
  }
  return compileResponse(response, url.href);
}

/** Compiles the body of a response. */
export async function compileResponse(response: Response, where = response.url || "the given Response"): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw loadError(`the wasm cannot be fetched (HTTP ${response.status}): ${where}`, "serve the wasm files beside the package's JavaScript, or import lockgate/inline");
  }
  // With streaming a browser compiles while it loads, and caches the machine code for the next visit.
  const streams = response.headers.get("content-type") === "application/wasm" && "compileStreaming" in WebAssembly;
  if (streams) return checkCompiled(WebAssembly.compileStreaming(response), where);
  let bytes: ArrayBuffer;
  try {
    bytes = await response.arrayBuffer();
  } catch (cause) {
    throw loadError(`the wasm was not received completely: ${where}`, "try again", cause);
  }
  return compileBytes(bytes, where);
}
