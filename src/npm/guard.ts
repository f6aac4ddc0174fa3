// A guard around everything an instance exports: whoever calls into the wasm, a trap is noticed.

/** What an instance exports. */
export type Exports = Record<string, unknown>;

type Exported = (...args: unknown[]) => unknown;

/** What the guard tells of, and asks. */
export interface Guarded {
  /** Something was thrown out of the wasm: nothing of the instance can be trusted any more. */
  trapped(error: unknown): void;
  isAlive(): boolean;
}

// Closures are called by timers, promises and events. Nobody there could catch anything: in Node it would end the process.
const isCallback = (name: string): boolean => name.startsWith("callback");

// What the first part gives to the rest: the glue knows nothing of it.
const isOfRest = (name: string): boolean => /^[$\d]/.test(name);

// Called by finalisers, at any time.
const isCleanup = (name: string): boolean => name.endsWith("_free") || name === "__wbindgen_destroy_closure";

/** The exports, each behind a guard. What Rust returns as an error is thrown by the glue, outside of this: only traps pass here. */
export function guarded(exports: Exports, guard: Guarded): Exports {
  const all: Exports = {};
  for (const [name, value] of Object.entries(exports)) {
    if (isOfRest(name)) continue;
    all[name] = typeof value === "function" ? behind(name, value as Exported, guard) : value;
  }
  return all;
}

/** Lets go of the exports, and with them of the memory, although the glue may still be held by somebody. */
export function emptied(exports: Exports): void {
  for (const name of Object.keys(exports)) {
    exports[name] = typeof exports[name] === "function" ? inert : undefined;
  }
}

const NOTHING = [0, 0];
const inert: Exported = () => NOTHING;

function behind(name: string, exported: Exported, guard: Guarded): Exported {
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
