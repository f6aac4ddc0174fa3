// For users' own tests: a model that follows a script, the rules for stores, and a store that fails by plan.

export { faultyStore } from "./faulty-store.js";
export { storeRules } from "./store-rules.js";

import { customModel } from "./models.js";
import type { Model, ModelDelta, ModelRequest, Usage } from "./types.js";

/** What a scripted model answers once. */
export interface ScriptedReply {
  readonly text?: string;
  readonly thinking?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly input: unknown; readonly id?: string }[];
  readonly usage?: Partial<Usage>;
  readonly finish?: "stop" | "tool-calls" | "length" | "filter";
  readonly delayMs?: number;
}

/** One step of a script: words, a whole reply, an error to throw, or a function of the request. */
export type ScriptStep =
  | string
  | ScriptedReply
  | Error
  | ((request: ModelRequest) => string | ScriptedReply | Promise<string | ScriptedReply>);

/** A model with a script. */
export interface ScriptedModel extends Model {
  readonly requests: readonly ModelRequest[];
  /** Throws if a step was not used. */
  finished(): void;
}

/** A model that follows a script, one step a request, and complains about the rest in both directions. */
export function scriptedModel(script: readonly ScriptStep[], options: { readonly contextWindow?: number } = {}): ScriptedModel {
  const requests: ModelRequest[] = [];
  let used = 0;
  const model = customModel({
    id: "scripted",
    ...options,
    async *generate(request, { signal }) {
      requests.push(request);
      const step = script[used++];
      if (step === undefined) throw new Error(`the script has ${script.length} steps, and request ${used} came`);
      if (step instanceof Error) throw step;
      const said = typeof step === "function" ? await step(request) : step;
      yield* deltasOf(typeof said === "string" ? { text: said } : said, signal);
    },
  });
  const finished = (): void => {
    if (used < script.length) throw new Error(`${script.length - used} of ${script.length} steps of the script were not used`);
  };
  // A model is frozen, so its script is a view of it.
  return Object.freeze(Object.create(model, { requests: { value: requests }, finished: { value: finished } })) as ScriptedModel;
}

async function* deltasOf(reply: ScriptedReply, signal: AbortSignal): AsyncGenerator<ModelDelta> {
  const { text = "", thinking = "", toolCalls = [], usage, delayMs = 0 } = reply;
  for (const word of words(thinking)) {
    await pause(delayMs, signal);
    yield { type: "thinking", text: word };
  }
  for (const word of words(text)) {
    await pause(delayMs, signal);
    yield { type: "text", text: word };
  }
  for (const [index, { name, input, id }] of toolCalls.entries()) {
    yield { type: "tool-call", index, id: id ?? `call-${index + 1}`, name, arguments: JSON.stringify(input) };
  }
  if (usage !== undefined) yield { type: "usage", usage };
  yield { type: "finish", reason: reply.finish ?? (toolCalls.length > 0 ? "tool-calls" : "stop") };
}

function words(text: string): readonly string[] {
  return text.match(/\S*\s*/g)?.filter((word) => word !== "") ?? [];
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
