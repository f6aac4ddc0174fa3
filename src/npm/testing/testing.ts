// lockgate/testing, for users' own tests: a scripted model, the rules for stores, and a store that fails according to a plan.

export { faultyStore } from "./faulty-store.js";
export { storeRules } from "./store-rules.js";

import { customModel } from "../model/custom.js";
import type { Model, ModelDelta, ModelRequest, Usage } from "../types.js";

/** One answer of a scripted model. */
export interface ScriptedReply {
  /** The text of the answer, sent word by word. Default: none. */
  readonly text?: string;
  /** What the model thinks first, sent word by word. Default: none. */
  readonly thinking?: string;
  /** The tool calls at the end of the answer. The default of `id` is "call-1", "call-2" and so on. Default: none. */
  readonly toolCalls?: readonly { readonly name: string; readonly input: unknown; readonly id?: string }[];
  /** The usage that the model reports. Default: it reports none. */
  readonly usage?: Partial<Usage>;
  /** Why the answer ends. Default: "tool-calls" if there are tool calls, else "stop". */
  readonly finish?: "stop" | "tool-calls" | "length" | "filter";
  /** The time before each word, in ms. Default 0. */
  readonly delayMs?: number;
}

/** One step of a script: the text of a reply, a whole reply, an error to throw, or a function of the request. */
export type ScriptStep =
  | string
  | ScriptedReply
  | Error
  | ((request: ModelRequest) => string | ScriptedReply | Promise<string | ScriptedReply>);

/** A model that answers from a script, and keeps the requests that it got. */
export interface ScriptedModel extends Model {
  /** The requests so far, in order. */
  readonly requests: readonly ModelRequest[];
  /** Throws if a step of the script was not used. */
  finished(): void;
}

/** A model that answers each request with one step of the script. A request after the last step fails. */
export function scriptedModel(script: readonly ScriptStep[], options: { readonly contextWindow?: number } = {}): ScriptedModel {
  const requests: ModelRequest[] = [];
  let used = 0;
  const model = customModel({
    id: "scripted",
    ...options,
    async *generate(request, { signal }) {
      requests.push(request);
      const step = script[used++];
      if (step === undefined) throw new Error(`the script has only ${script.length} steps, but there was request ${used}`);
      if (step instanceof Error) throw step;
      const reply = typeof step === "function" ? await step(request) : step;
      yield* deltasOf(typeof reply === "string" ? { text: reply } : reply, signal);
    },
  });
  const finished = (): void => {
    if (used < script.length) throw new Error(`${script.length - used} of ${script.length} steps of the script were not used`);
  };
  // The model is frozen, so these members are added to an object that inherits from it.
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
