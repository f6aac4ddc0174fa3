// The glue that `src/build/package/glue.mjs` makes: a function that returns a new instance of `glue.d.ts`.

export type { Agent as CoreAgent, Call as CoreCall, OpenStore as CoreStore, PolledTask as CoreTask } from "./glue.js";

/**
 * Makes a new, independent instance. `guard` gets its exports and returns the wrapped ones. `initSync` must be called
 * first. An instance of the first part alone calls `fetchRest` when it needs the rest; `fetchRest` must call `complete`.
 */
export type Instantiate = (guard: (exports: Record<string, unknown>) => Record<string, unknown>, fetchRest: () => void) => Core;
export const instantiate: Instantiate;

/** The build of glue and wasm. The wasm has the same text in its custom section `lockgate`. */
export const SEAL: string;

type GlueModule = typeof import("./glue.js");

/** What Rust exports, and what `src/build/package/glue.mjs` adds to it. */
export interface Core extends GlueModule {
  initSync(options: { module: WebAssembly.Module }): Record<string, unknown>;
  /** Adds the rest to an instance of the first part. */
  complete(rest: WebAssembly.Module): void;
  /** Releases the memory. */
  release(): void;
  /** Only in the build for tests. */
  trap?(says?: string): void;
  /** Only in the build for tests. */
  trapLater?(): void;
}

/** An object in wasm memory. */
export interface CoreObject {
  free(): void;
  __destroy_into_raw(): number;
  /** Whether it holds data that is not in the store: turns that the store did not accept, or pending work. */
  isNeeded?(): boolean;
}
