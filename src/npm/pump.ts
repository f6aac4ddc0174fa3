// Pumps an async iterable of deltas into a buffer that Rust drains whole.

import { wellFormed } from "./text.js";
import type { ModelDelta } from "./types.js";

/** Deltas that may wait unread before the pump pauses. */
const FULL = 4_096;

/** Deltas that are enough for one batch, and the microtasks in which the next one must come to join it. */
const BATCH = 1_024;
const TICKS = 4;

/**
 * Pieces that come so soon after others were handed over wait for each other: a quarter of what a screen takes to show
 * anything, and a fast model costs a tenth. What comes after a pause is handed over at once.
 */
const GAP_MS = 4;

/** What Rust pulls. */
export interface Deltas {
  /** Everything that has come, as one JSON list, or a promise of it; the empty list is the end. */
  next(): string | Promise<string>;
  cancel(): void;
}

/** Begins to pump; the signal fires when Rust has no use for more. It is made when it is first asked for. */
export function pump(begin: (options: { readonly signal: AbortSignal }) => AsyncIterable<ModelDelta>, flag: () => void): Deltas {
  let controller: AbortController | undefined;
  let stopped = false;
  const options = {
    get signal(): AbortSignal {
      controller ??= new AbortController();
      if (stopped) controller.abort();
      return controller.signal;
    },
  };
  const buffer = new Pieces();
  let over = false;
  let failure: { readonly error: unknown } | undefined;
  let told: (() => void) | undefined;
  let drained: (() => void) | undefined;
  const gap = new Gap();
  const isEnough = (): boolean => over || stopped || buffer.n >= BATCH || buffer.isUrgent;
  const tell = (): void => {
    told?.();
    told = undefined;
    if (isEnough()) gap.end();
  };
  const run = async (): Promise<void> => {
    // Not while Rust is on the stack: what a user wrote may call into it.
    await null;
    try {
      for await (const delta of begin(options)) {
        if (stopped) break;
        buffer.push(delta);
        tell();
        if (buffer.n >= FULL) await new Promise<void>((resolve) => (drained = resolve));
      }
      if (!stopped) buffer.end();
    } catch (error) {
      failure = { error };
    }
    over = true;
    tell();
  };
  void run();
  const take = (): string | undefined => {
    if (buffer.n > 0) {
      const batch = wellFormed(JSON.stringify(buffer.take()), flag);
      drained?.();
      return batch;
    }
    if (failure !== undefined) throw failure.error;
    return over ? "[]" : undefined;
  };
  const arrived = async (): Promise<string> => {
    if (buffer.n === 0 && !over) await new Promise<void>((resolve) => (told = resolve));
    // A model that has more at hand yields it within a few microtasks: one batch costs hardly more than one delta.
    for (let n = -1; buffer.n > n && !over && n < BATCH; ) {
      n = buffer.n;
      for (let tick = 0; tick < TICKS && !over; tick++) await null;
    }
    if (!isEnough()) await gap.wait();
    gap.begin();
    return take() ?? "[]";
  };
  return {
    next: () => (over || buffer.n >= BATCH ? take()! : arrived()),
    cancel: () => {
      if (over) return;
      stopped = true;
      queueMicrotask(() => {
        controller?.abort();
        gap.end();
        drained?.();
      });
    },
  };
}

/** The time after a handover in which the next one waits. */
class Gap {
  #began = -GAP_MS;
  #end: (() => void) | undefined;

  begin(): void {
    this.#began = performance.now();
  }

  /** Waits until it has passed, or is ended before. */
  async wait(): Promise<void> {
    const left = GAP_MS - (performance.now() - this.#began);
    if (left <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, left);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#end = undefined;
  }

  end(): void {
    this.#end?.();
  }
}

/**
 * What has come and nobody has taken yet. Words that follow each other are joined: whoever takes them late wants them together.
 * Half a character at the end of a delta waits for the other half at the beginning of the next.
 */
class Pieces {
  /** How many deltas have come since the last time they were taken. */
  n = 0;
  /** Whether something else than words has come, which somebody may act upon. */
  isUrgent = false;
  #deltas: ModelDelta[] = [];
  /** The last of them, while words may be added to it. */
  #last: Words | undefined;
  #half: Words = { type: "", text: "" };

  push(delta: ModelDelta): void {
    this.n += 1;
    if (!isWords(delta)) {
      this.#last = undefined;
      this.#deltas.push(delta);
      this.isUrgent = true;
      return;
    }
    // Nearly always: more words of the same kind, and whole ones.
    if (this.#half.text === "" && this.#last?.type === delta.type && !isHalf(delta.text) && isPlain(delta)) {
      this.#last.text += delta.text;
      return;
    }
    const text = delta.type === this.#half.type ? this.#half.text + delta.text : delta.text;
    const cut = isHalf(text) ? text.length - 1 : text.length;
    this.#half = { type: delta.type, text: text.slice(cut) };
    this.#add(delta, text.slice(0, cut));
  }

  /** Nothing more comes: the half that is left over goes as it is. */
  end(): void {
    const { type, text } = this.#half;
    if (text === "") return;
    this.n += 1;
    this.#deltas.push({ type, text } as ModelDelta);
  }

  take(): readonly ModelDelta[] {
    const deltas = this.#deltas;
    [this.n, this.#deltas, this.#last, this.isUrgent] = [0, [], undefined, false];
    return deltas;
  }

  #add(delta: Words, text: string): void {
    if (this.#last?.type === delta.type && isPlain(delta)) {
      this.#last.text += text;
      return;
    }
    const own = { ...delta, text };
    this.#last = isPlain(delta) ? own : undefined;
    this.#deltas.push(own as ModelDelta);
  }
}

interface Words {
  readonly type: string;
  text: string;
}

function isWords(delta: unknown): delta is Words {
  if (typeof delta !== "object" || delta === null) return false;
  const { type, text } = delta as Words;
  return (type === "text" || type === "thinking") && typeof text === "string";
}

/** Whether there is nothing but words: a signature, say, belongs to its own delta. */
function isPlain(delta: Words): boolean {
  for (const member in delta) if (member !== "type" && member !== "text") return false;
  return true;
}

/** Whether a text ends in the first half of a character. */
function isHalf(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1);
  return unit >= 0xd800 && unit <= 0xdbff;
}
