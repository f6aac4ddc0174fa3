// Models that come with the package.

import { LockgateError } from "./errors.js";
import { marked } from "./kinds.js";
import type { Model, ModelDelta, ModelRequest } from "./types.js";

/** A small offline model that follows simple rules, so that demos and tests need no key. It says what it is. */
export function demoModel(options: { readonly delayMs?: number } = {}): Model {
  const delayMs = options.delayMs ?? 0;
  if (!Number.isInteger(delayMs) || delayMs < 0) {
    throw new LockgateError("OPTIONS", "delayMs is not a number of milliseconds", { hint: "give a whole number from 0 on" });
  }
  return marked<Model>({ id: "demo" }, { kind: "model", id: "demo", demo: { delayMs } });
}

/** Your own model: yield deltas, return nothing. What it throws fails the call with MODEL_FAILED, or with its own code if it has one of ours. */
export function customModel(options: {
  readonly id: string;
  readonly contextWindow?: number;
  generate(request: ModelRequest, options: { signal: AbortSignal }): AsyncIterable<ModelDelta>;
}): Model {
  const { id, generate } = options;
  if (typeof id !== "string" || id === "" || typeof generate !== "function") {
    throw new LockgateError("OPTIONS", "a custom model needs an id and a generate function", {
      hint: "customModel({ id, async *generate(request) { yield { type: 'text', text: '…' } } })",
    });
  }
  return marked<Model>({ id }, { kind: "model", id, generate: generate.bind(options) });
}
