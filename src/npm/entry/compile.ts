// Compiling the wasm from whatever a host has of it, with errors that name the likely fix.

import { LockgateError } from "../errors.js";
import { strange, strangeSeal } from "../wasm.js";

/** The compiled module of bytes; `where` is where they come from. */
export async function compiled(bytes: ArrayBuffer | ArrayBufferView, where: string): Promise<WebAssembly.Module> {
  if (!isWasm(bytes)) throw notWasm(where);
  return proved(WebAssembly.compile(bytes as BufferSource), where);
}

/** A module that is being compiled, if it is of this build. */
export async function proved(compiling: Promise<WebAssembly.Module>, where: string): Promise<WebAssembly.Module> {
  let module: WebAssembly.Module;
  try {
    module = await compiling;
  } catch (cause) {
    throw uncompiled(where, cause);
  }
  return ofThisBuild(module, where);
}

/** The same for bytes, at once. */
export function compiledNow(bytes: Uint8Array<ArrayBuffer>, where: string): WebAssembly.Module {
  if (!isWasm(bytes)) throw notWasm(where);
  try {
    return ofThisBuild(new WebAssembly.Module(bytes), where);
  } catch (cause) {
    throw LockgateError.isInstance(cause) ? cause : uncompiled(where, cause);
  }
}

function ofThisBuild(module: WebAssembly.Module, where: string): WebAssembly.Module {
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal, where);
  return module;
}

/** The compiled module of what `lockgate/inline` carries, and what others fall back to. */
export async function compiledInline(): Promise<WebAssembly.Module> {
  const { WASM } = await import("../inline-wasm.js");
  return compiled(await inflated(WASM), "the wasm inside the package");
}

/** The wasm that was written as text. */
export async function inflated(text: string): Promise<ArrayBuffer> {
  const deflated = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

export function failed(message: string, hint: string, cause?: unknown): LockgateError {
  return new LockgateError("ENGINE_LOAD", message, { hint, cause });
}

function isWasm(bytes: ArrayBuffer | ArrayBufferView): boolean {
  const [buffer, start] = bytes instanceof ArrayBuffer ? [bytes, 0] : [bytes.buffer, bytes.byteOffset];
  return bytes.byteLength > 8 && new Uint8Array(buffer, start, 4).join() === "0,97,115,109";
}

function notWasm(where: string): LockgateError {
  const hint = "a dev server may answer with a page instead: serve core.wasm there, exclude lockgate from pre-bundling, or import lockgate/inline";
  return failed(`what is served is not wasm: ${where}`, hint);
}

/** Whether the policy of the page, or of the host, is why nothing can be compiled. */
export function isForbidden(cause: unknown): boolean {
  return /content security policy|unsafe-eval|disallowed by embedder/i.test(String(cause));
}

function uncompiled(where: string, cause: unknown): LockgateError {
  if (isForbidden(cause)) {
    const hint = "allow script-src 'wasm-unsafe-eval' in the Content-Security-Policy; in an edge worker import lockgate itself, which imports the module";
    return failed(`compiling wasm is forbidden here: ${where}`, hint, cause);
  }
  return failed(`the wasm cannot be compiled: ${where}`, "the file is cut off or changed on its way: serve dist/core.wasm as it is", cause);
}
