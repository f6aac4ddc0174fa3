// Wraps every export of a wasm instance, so that a trap is noticed no matter which code calls into the wasm.

/** The exports of a wasm instance. */
export type Exports = Record<string, unknown>;

type ExportedFunction = (...args: unknown[]) => unknown;

/** What a guard needs from the owner of the instance. */
export interface Guarded {
  /** Called when the wasm has thrown. After that the instance must not be used any more. */
  trapped(error: unknown): void;
  isAlive(): boolean;
}

// Timers, promises and events call closures. They cannot catch an error: in Node it would end the process.
const isCallback = (name: string): boolean => name.startsWith("callback");

// Exports that the first part of the wasm has only for the second part. The glue does not know them.
const isOfRest = (name: string): boolean => /^[$\d]/.test(name);

// Finalisers call these at any time.
const isCleanup = (name: string): boolean => name.endsWith("_free") || name === "__wbindgen_destroy_closure";

/**
 * Wraps each export in a guard. Errors that Rust returns are thrown by the glue, outside of the guard, so only traps
 * reach it.
 */
export function guarded(exports: Exports, guard: Guarded): Exports {
  const all: Exports = {};
  for (const [name, value] of Object.entries(exports)) {
    if (isOfRest(name)) continue;
    all[name] = typeof value === "function" ? behind(name, value as ExportedFunction, guard) : value;
  }
  return all;
}

/** Empties the exports, so that the memory can be freed even if some code still holds the glue. */
export function emptied(exports: Exports): void {
  for (const name of Object.keys(exports)) {
    exports[name] = typeof exports[name] === "function" ? inert : undefined;
  }
}

const NOTHING = [0, 0];
const inert: ExportedFunction = () => NOTHING;

function behind(name: string, exported: ExportedFunction, guard: Guarded): ExportedFunction {
  const isSilent = isCallback(name) || isCleanup(name);
  return (...args) => {
    if (isSilent && !guard.isAlive()) return NOTHING;
    try {
      return exported(...args);
    } catch (error) {
      guard.trapped(error);
      if (isSilent) return NOTHING;
      throw error;
    }
  };
}
