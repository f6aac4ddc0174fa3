// Models: how they are configured, what they are asked, and what they answer.

import type { Msg, ProviderData, Usage } from "./message.js";

declare const opaque: unique symbol;

/** A model, created by `openai`, `anthropic`, `gemini`, `customModel`, `aiSdkModel` or `demoModel`. */
export interface Model {
  /** The name of the model in events: the option `model` or `id`, or the `modelId` of an AI SDK model. */
  readonly id: string;
  /** Marks the objects that these functions make. An agent takes no others. */
  readonly [opaque]: "model";
}

/** Options of a model request. Options that a model does not support are left out. */
export interface GenerateOptions {
  /** How random the answer is; the provider says in which range. Default: the provider's. */
  readonly temperature?: number;
  /** Only the most likely tokens that together have this probability are considered, from 0 to 1. Default: the provider's. */
  readonly topP?: number;
  /** The most tokens of an answer. Default: the provider's; for Anthropic, which requires a number, 8,192 or 4,096. */
  readonly maxTokens?: number;
  /** Whether the model may ("auto"), must not ("none") or must ("required") call a tool, or the tool that it must call. Default: the provider's, usually "auto". */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string };
  /** How long the model thinks before it answers: "none", "low", "medium", "high", or another word of the provider. Default: the provider's. */
  readonly reasoningEffort?: string;
  /** More members for the body of the request, as the provider calls them; they replace ours, except the messages and `stream`. For an AI SDK model: its `providerOptions`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** A model request. */
export interface ModelRequest {
  /** The system prompt. */
  readonly system: string;
  /** The conversation that the model sees, oldest message first. */
  readonly messages: readonly Msg[];
  /** The tools that the model may call. `inputSchema` is JSON Schema. Empty for the closing answer after `maxIterations`. */
  readonly tools: readonly { name: string; description: string; inputSchema: unknown }[];
  /** The options of the request: the agent's, with those of the call on top. */
  readonly generate: GenerateOptions;
}

/** Options of a model that is reached over HTTP. */
export interface HttpModelOptions {
  /** The name of the model at its provider. */
  readonly model: string;
  /** The URL of the provider. Default: the provider that the function is named after. */
  readonly baseUrl?: string;
  /** The context window of the model in tokens. Default: what the package knows about the model. */
  readonly contextWindow?: number;
  /** The API key, or a function that returns it before every request. Keys stay in JavaScript: they are never in wasm, state, logs, events or errors. */
  readonly apiKey?: string | (() => string | Promise<string>);
  /** Headers of every request. They take precedence over the default headers. */
  readonly headers?: Record<string, string>;
  /** Replaces the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Whether answers are streamed. Default true. */
  readonly stream?: boolean;
}

/** A part of a streamed answer. */
export type ModelDelta =
  /** More text. */
  | { readonly type: "text"; readonly text: string }
  /** More of what the model thinks. `signature`: the provider's proof of it, once it has arrived. */
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string }
  /** More of a tool call. */
  | {
      readonly type: "tool-call";
      /** The number of the tool call in this answer. It tells which call the delta belongs to. */
      readonly index: number;
      /** The id of the tool call. Default: a generated one. */
      readonly id?: string;
      /** The name of the tool. One delta of the tool call must have it. */
      readonly name?: string;
      /** More of the arguments, as JSON text. */
      readonly arguments?: string;
      /** Data that the provider wants back with the tool call. */
      readonly provider?: ProviderData;
    }
  /** The usage so far. A number replaces the one of an earlier delta; `seconds` is measured by the engine. */
  | { readonly type: "usage"; readonly usage: Partial<Usage> }
  /** Why the answer ended. Default: "tool-calls" if there are tool calls, else "stop". */
  | { readonly type: "finish"; readonly reason: "stop" | "tool-calls" | "length" | "filter" };
