// Models that users write themselves.

import { LockgateError } from "../errors.js";
import { marked } from "../values/internals.js";
import type { Model, ModelDelta, ModelRequest } from "../types.js";

/** A model of your own: `generate` yields deltas and returns nothing. An error that it throws is classified like a provider's error, and is MODEL_FAILED if no class fits. */
export function customModel(options: {
  readonly id: string;
  readonly contextWindow?: number;
  generate(request: ModelRequest, options: { signal: AbortSignal }): AsyncIterable<ModelDelta>;
}): Model {
  const { id, generate, contextWindow } = options ?? {};
  if (typeof id !== "string" || id === "" || typeof generate !== "function") {
    throw new LockgateError("OPTIONS", "a custom model needs an id and a generate function", {
      hint: "customModel({ id, async *generate(request) { yield { type: 'text', text: '…' } } })",
    });
  }
  return marked<Model>({ id }, { kind: "model", id, contextWindow, generate: generate.bind(options) });
}
