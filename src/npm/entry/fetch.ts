// Fetching the wasm, with an error that names the address and the likely fix.

import { compiled, compiledInline, failed, isForbidden, proved } from "./compile.js";

/**
 * The compiled module at an address. A file that is of another build may come from a cache: it is asked for once more.
 * Where the file is lost, as dev servers and bundlers do, the copy of all the wasm inside the package takes its place.
 */
export async function fetchModule(url: URL): Promise<{ readonly module: WebAssembly.Module; readonly isCopy: boolean }> {
  try {
    const again = (error: Error): Promise<WebAssembly.Module> => (isForbidden(error.cause) ? Promise.reject(error) : fetched(url, { cache: "reload" }));
    return { module: await fetched(url).catch(again), isCopy: false };
  } catch (error) {
    if (isForbidden((error as Error).cause)) throw error;
    // What the file's own error says is the better advice.
    const copy = await compiledInline().catch(() => {
      throw error;
    });
    return { module: copy, isCopy: true };
  }
}

/** The compiled module at an address, and nothing else. */
export async function fetched(url: URL, how: RequestInit = {}): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...how });
  } catch (cause) {
    throw failed(`the wasm cannot be fetched: ${url.href}`, "check that the file is served, and the CSP's connect-src; or import lockgate/inline", cause);
  }
  return answered(response, url.href);
}

/** The compiled module of an answer. */
export async function answered(response: Response, where = response.url || "the given Response"): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw failed(`the wasm cannot be fetched (HTTP ${response.status}): ${where}`, "serve the wasm files beside the package's JavaScript, or import lockgate/inline");
  }
  // Streamed, a browser compiles while it loads, and keeps the machine code for the next visit.
  const streams = response.headers.get("content-type") === "application/wasm" && "compileStreaming" in WebAssembly;
  if (streams) return proved(WebAssembly.compileStreaming(response), where);
  let bytes: ArrayBuffer;
  try {
    bytes = await response.arrayBuffer();
  } catch (cause) {
    throw failed(`the wasm cannot be fetched to its end: ${where}`, "try again", cause);
  }
  return compiled(bytes, where);
}
