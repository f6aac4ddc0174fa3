// Pumps an async iterable of deltas into a buffer that Rust drains whole.

import { wellFormed } from "./text.js";
import type { ModelDelta } from "./types.js";

/** Deltas that may wait unread before the pump pauses. */
const FULL = 1_024;

/** Deltas that are enough for one batch, and the microtasks in which the next one must come to join it. */
const BATCH = 64;
const TICKS = 4;

/** What Rust pulls. */
export interface Deltas {
  /** Everything that has come, as one JSON list, or a promise of it; the empty list is the end. */
  next(): string | Promise<string>;
  cancel(): void;
}

/** Begins to pump; the signal fires when Rust has no use for more. It is made when it is first asked for. */
export function pump(begin: (options: { readonly signal: AbortSignal }) => AsyncIterable<ModelDelta>): Deltas {
  let controller: AbortController | undefined;
  let stopped = false;
  const options = {
    get signal(): AbortSignal {
      controller ??= new AbortController();
      if (stopped) controller.abort();
      return controller.signal;
    },
  };
  const buffer: ModelDelta[] = [];
  const half = new Half();
  let over = false;
  let failure: { readonly error: unknown } | undefined;
  let told: (() => void) | undefined;
  let drained: (() => void) | undefined;
  const tell = (): void => {
    told?.();
    told = undefined;
  };
  const run = async (): Promise<void> => {
    // Not while Rust is on the stack: what a user wrote may call into it.
    await null;
    for await (const delta of begin(options)) {
      if (stopped) return;
      buffer.push(half.join(delta));
      tell();
      if (buffer.length >= FULL) await new Promise<void>((resolve) => (drained = resolve));
    }
  };
  run()
    .catch((error: unknown) => {
      failure = { error };
    })
    .finally(() => {
      over = true;
      tell();
    });
  const take = (): string | undefined => {
    if (buffer.length > 0) {
      const batch = wellFormed(JSON.stringify(buffer));
      buffer.length = 0;
      drained?.();
      return batch;
    }
    if (failure !== undefined) throw failure.error;
    return over ? "[]" : undefined;
  };
  const arrived = async (): Promise<string> => {
    if (buffer.length === 0 && !over) await new Promise<void>((resolve) => (told = resolve));
    // A model that has more at hand yields it within a few microtasks: one batch costs hardly more than one delta.
    for (let n = -1; buffer.length > n && !over && n < BATCH; ) {
      n = buffer.length;
      for (let tick = 0; tick < TICKS; tick++) await null;
    }
    return take() ?? "[]";
  };
  return {
    next: () => (over || buffer.length >= BATCH ? take()! : arrived()),
    cancel: () => {
      if (over) return;
      stopped = true;
      queueMicrotask(() => {
        controller?.abort();
        drained?.();
      });
    },
  };
}

/** Half a character at the end of a delta waits for the other half at the beginning of the next. */
class Half {
  #type = "";
  #waits = "";

  join(delta: ModelDelta): ModelDelta {
    if (typeof delta !== "object" || delta === null) return delta;
    if ((delta.type !== "text" && delta.type !== "thinking") || typeof delta.text !== "string") return delta;
    const text = (delta.type === this.#type ? this.#waits : "") + delta.text;
    const cut = /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
    [this.#type, this.#waits] = [delta.type, text.slice(cut)];
    return { ...delta, text: text.slice(0, cut) };
  }
}
