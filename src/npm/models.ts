// Models that come with the package.

import { LockgateError } from "./errors.js";
import { marked } from "./kinds.js";
import type { Model, ModelDelta, ModelRequest } from "./types.js";

/** Your own model: yield deltas, return nothing. What it throws is classified by the same rules as provider errors; otherwise MODEL_FAILED. */
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
