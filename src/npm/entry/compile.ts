// Compiles the wasm and checks that it belongs to this build. Errors name the likely fix.

import { LockgateError } from "../errors.js";
import { forbidden, isForbidden, strange, strangeSeal } from "../runtime/wasm.js";

/** Compiles bytes. `where` says in errors where the bytes come from. */
export async function compileBytes(bytes: ArrayBuffer | ArrayBufferView, where: string): Promise<WebAssembly.Module> {
  if (!isWasm(bytes)) throw notWasm(where);
  return checkCompiled(WebAssembly.compile(bytes as BufferSource), where);
}

/** Waits for a compilation and checks that the module belongs to this build. */
export async function checkCompiled(compiling: Promise<WebAssembly.Module>, where: string): Promise<WebAssembly.Module> {
  let module: WebAssembly.Module;
  try {
    module = await compiling;
  } catch (cause) {
    throw compileError(where, cause);
  }
  return checkBuild(module, where);
}

/** Compiles bytes synchronously. */
export function compileBytesSync(bytes: Uint8Array<ArrayBuffer>, where: string): WebAssembly.Module {
  if (!isWasm(bytes)) throw notWasm(where);
  try {
    return checkBuild(new WebAssembly.Module(bytes), where);
  } catch (cause) {
    throw LockgateError.isInstance(cause) ? cause : compileError(where, cause);
  }
}

function checkBuild(module: WebAssembly.Module, where: string): WebAssembly.Module {
  const seal = strangeSeal(module);
  if (seal !== null) throw strange(seal, where);
  return module;
}

/** Compiles the copy inside the package. Other ways of loading use it when the wasm file is lost. */
export async function compileInline(): Promise<WebAssembly.Module> {
  const { WASM } = await import("../inline-wasm.js");
  return compileBytes(await inflate(WASM), "the wasm inside the package");
}

/** The bytes of the copy inside the package, which is deflated and written in Base64. */
export async function inflate(text: string): Promise<ArrayBuffer> {
  const deflated = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** The error ENGINE_LOAD. */
export function loadError(message: string, hint: string, cause?: unknown): LockgateError {
  return new LockgateError("ENGINE_LOAD", message, { hint, cause });
}

function isWasm(bytes: ArrayBuffer | ArrayBufferView): boolean {
  const [buffer, start] = bytes instanceof ArrayBuffer ? [bytes, 0] : [bytes.buffer, bytes.byteOffset];
  return bytes.byteLength > 8 && new Uint8Array(buffer, start, 4).join() === "0,97,115,109";
}

function notWasm(where: string): LockgateError {
  const hint = "a dev server may answer with a page instead: serve core.wasm there, exclude lockgate from pre-bundling, or import lockgate/inline";
  return loadError(`the served file is not wasm: ${where}`, hint);
}

function compileError(where: string, cause: unknown): LockgateError {
  if (isForbidden(cause)) {
    return forbidden(`compiling wasm is forbidden here: ${where}`, cause);
  }
  return loadError(`the wasm cannot be compiled: ${where}`, "the file was cut off or changed on its way: serve dist/core.wasm unchanged", cause);
}
