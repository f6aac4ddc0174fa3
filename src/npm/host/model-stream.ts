// Reads an async iterable of deltas into a buffer. Rust takes all that is in the buffer at once.

import type { JsDeltas } from "../glue.js";
import { wellFormed } from "../values/text.js";
import type { ModelDelta } from "../types.js";

/** The number of unread deltas at which reading pauses. */
const FULL = 4_096;

/** The largest batch of deltas, and the microtasks within which a delta must arrive to join the batch. */
const BATCH = 1_024;
const TICKS = 4;

/**
 * Deltas that arrive this soon after the last handover are collected. It is a quarter of the time that a screen needs
 * to show anything, and makes a fast model ten times cheaper to read. A delta after a pause is handed over at once.
 */
const GAP_MS = 4;

/** The interface that Rust reads. */
export interface Deltas extends JsDeltas {
  /** All deltas that have arrived, as one JSON list, or a promise of it. The empty list means the end. */
  next(): string | Promise<string>;
}

/** Starts to read. The signal is aborted when Rust needs no more deltas. It is created on first use. */
export function readDeltas(begin: (options: { readonly signal: AbortSignal }) => AsyncIterable<ModelDelta>, flag: () => void): Deltas {
  const stream = new DeltaStream(flag);
  void stream.read(begin);
  return { next: () => stream.next(), cancel: () => stream.cancel() };
}

class DeltaStream {
  readonly #flag: () => void;
  readonly #buffer = new Pieces();
  readonly #gap = new Gap();
  #controller: AbortController | undefined;
  #stopped = false;
  #over = false;
  #failure: { readonly error: unknown } | undefined;
  /** Called when a delta has arrived. */
  #arrived: (() => void) | undefined;
  /** Called when a full buffer was taken. */
  #drained: (() => void) | undefined;

  constructor(flag: () => void) {
    this.#flag = flag;
  }

  async read(begin: (options: { readonly signal: AbortSignal }) => AsyncIterable<ModelDelta>): Promise<void> {
    const signal = (): AbortSignal => this.#signal;
    const options = { get signal() { return signal(); } };
    // Code of the user must not run while Rust is on the stack, because it may call into Rust.
    await null;
    try {
      for await (const delta of begin(options)) {
        if (this.#stopped) break;
        this.#buffer.push(delta);
        this.#tell();
        if (this.#buffer.n >= FULL) await new Promise<void>((resolve) => (this.#drained = resolve));
      }
      if (!this.#stopped) this.#buffer.end();
    } catch (error) {
      this.#failure = { error };
    }
    this.#over = true;
    this.#tell();
  }

  next(): string | Promise<string> {
    return this.#over || this.#buffer.n >= BATCH ? this.#take()! : this.#collect();
  }

  cancel(): void {
    if (this.#over) return;
    this.#stopped = true;
    queueMicrotask(() => {
      this.#controller?.abort();
      this.#gap.end();
      this.#drained?.();
    });
  }

  get #signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#stopped) this.#controller.abort();
    return this.#controller.signal;
  }

  get #isEnough(): boolean {
    return this.#over || this.#stopped || this.#buffer.n >= BATCH || this.#buffer.isUrgent;
  }

  #tell(): void {
    this.#arrived?.();
    this.#arrived = undefined;
    if (this.#isEnough) this.#gap.end();
  }

  #take(): string | undefined {
    if (this.#buffer.n > 0) {
      const batch = wellFormed(JSON.stringify(this.#buffer.take()), this.#flag);
      this.#drained?.();
      return batch;
    }
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#over ? "[]" : undefined;
  }

  /** Waits for deltas, and collects those that follow at once. */
  async #collect(): Promise<string> {
    const buffer = this.#buffer;
    if (buffer.n === 0 && !this.#over) await new Promise<void>((resolve) => (this.#arrived = resolve));
    // A model that has more deltas yields them within a few microtasks. One batch costs hardly more than one delta.
    for (let n = -1; buffer.n > n && !this.#over && n < BATCH; ) {
      n = buffer.n;
      for (let tick = 0; tick < TICKS && !this.#over; tick++) await null;
    }
    if (!this.#isEnough) await this.#gap.wait();
    this.#gap.begin();
    return this.#take() ?? "[]";
  }
}

/** The time after a handover during which deltas are collected. */
class Gap {
  #began = -GAP_MS;
  #end: (() => void) | undefined;

  begin(): void {
    this.#began = performance.now();
  }

  /** Waits until the time has passed or was ended early. */
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
 * The deltas that arrived and were not taken yet. Neighbouring text deltas are joined. Half a character (a high
 * surrogate) at the end of text, thinking or arguments waits for its other half in the next delta of the same block.
 */
class Pieces {
  /** How many deltas have arrived since the last time they were taken. */
  n = 0;
  /** Whether a delta other than text has arrived, which the reader may need at once. */
  isUrgent = false;
  #deltas: ModelDelta[] = [];
  /** The last delta, while text can be added to it. */
  #last: Words | undefined;
  #half: Words = { type: "", text: "" };
  /** The halves that wait in the arguments of tool calls, by the index of the call. */
  readonly #halvesOfCalls = new Map<unknown, string>();

  push(delta: ModelDelta): void {
    this.n += 1;
    if (!isWords(delta)) {
      this.#pushOther(delta);
      return;
    }
    // The usual case: more text of the same type, without half characters.
    if (this.#half.text === "" && this.#last?.type === delta.type && !isHalf(delta.text) && isPlain(delta)) {
      this.#last.text += delta.text;
      return;
    }
    if (delta.type !== this.#half.type) this.#endText();
    const text = this.#half.text + delta.text;
    const cut = isHalf(text) ? text.length - 1 : text.length;
    this.#half = { type: delta.type, text: text.slice(cut) };
    this.#add(delta, text.slice(0, cut));
  }

  /** The stream has ended. Half a character that is left is passed on unchanged. */
  end(): void {
    const before = this.#deltas.length;
    this.#endText();
    for (const [index, half] of this.#halvesOfCalls) this.#deltas.push({ type: "tool-call", ...(index !== undefined && { index }), arguments: half } as ModelDelta);
    this.#halvesOfCalls.clear();
    this.n += this.#deltas.length - before;
  }

  take(): readonly ModelDelta[] {
    const deltas = this.#deltas;
    [this.n, this.#deltas, this.#last, this.isUrgent] = [0, [], undefined, false];
    return deltas;
  }

  /** A delta that is neither text nor thinking. It ends the text before it, unless it only counts tokens. */
  #pushOther(delta: ModelDelta): void {
    const { type } = (delta ?? {}) as { type?: unknown };
    if (type === "finish") this.end();
    else if (type !== "usage") this.#endText();
    this.#last = undefined;
    this.#deltas.push(type === "tool-call" ? this.#joinedCall(delta as CallDelta) : delta);
    this.isUrgent = true;
  }

  #joinedCall(delta: CallDelta): ModelDelta {
    const half = this.#halvesOfCalls.get(delta.index) ?? "";
    if (typeof delta.arguments !== "string" || delta.arguments === "" || (half === "" && !isHalf(delta.arguments))) return delta;
    const text = half + delta.arguments;
    const cut = isHalf(text) ? text.length - 1 : text.length;
    if (cut < text.length) this.#halvesOfCalls.set(delta.index, text.slice(cut));
    else this.#halvesOfCalls.delete(delta.index);
    return { ...delta, arguments: text.slice(0, cut) };
  }

  /** The block of the half that waits has ended. The half is passed on unchanged. */
  #endText(): void {
    const { type, text } = this.#half;
    this.#half = { type: "", text: "" };
    if (text !== "") this.#add({ type, text }, text);
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

type CallDelta = Extract<ModelDelta, { readonly type: "tool-call" }>;

interface Words {
  readonly type: string;
  text: string;
}

function isWords(delta: unknown): delta is Words {
  if (typeof delta !== "object" || delta === null) return false;
  const { type, text } = delta as Words;
  return (type === "text" || type === "thinking") && typeof text === "string";
}

/** Whether the delta has only a text. A signature, for example, belongs to its own delta. */
function isPlain(delta: Words): boolean {
  for (const member in delta) if (member !== "type" && member !== "text") return false;
  return true;
}

/** Whether a text ends with half a character (a high surrogate). */
function isHalf(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1);
  return unit >= 0xd800 && unit <= 0xdbff;
}
