// What a model is, for whoever uses one or writes one.

import type { Msg, ProviderData, Usage } from "./types.js";

declare const opaque: unique symbol;

/** A model, made by `openai`, `anthropic`, `gemini`, `customModel`, `aiSdkModel` or `demoModel`. */
export interface Model {
  readonly id: string;
  readonly [opaque]: "model";
}

/** How a model is asked; what it does not know is left out. */
export interface GenerateOptions {
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxTokens?: number;
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string };
  readonly reasoningEffort?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** What a model is asked. */
export interface ModelRequest {
  readonly system: string;
  readonly messages: readonly Msg[];
  readonly tools: readonly { name: string; description: string; inputSchema: unknown }[];
  readonly generate: GenerateOptions;
}

/** Where a model is, and how to reach it. */
export interface HttpModelOptions {
  /** The provider's name of the model. */
  readonly model: string;
  /** Where the provider is. Default: the maker of the dialect. */
  readonly baseUrl?: string;
  /** How many tokens the model takes, where the package does not know it, or knows better. */
  readonly contextWindow?: number;
  /** A key, or a function asked before every request. Keys stay in JavaScript: never in wasm, state, logs, events or errors. */
  readonly apiKey?: string | (() => string | Promise<string>);
  /** Sent with every request, over our own. */
  readonly headers?: Record<string, string>;
  /** Used in place of the global one. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Whether answers come piece by piece. On. */
  readonly stream?: boolean;
}

/** A piece of an answer. */
export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string }
  | {
      readonly type: "tool-call";
      readonly index: number;
      readonly id?: string;
      readonly name?: string;
      readonly arguments?: string;
      readonly provider?: ProviderData;
    }
  | { readonly type: "usage"; readonly usage: Partial<Usage> }
  | { readonly type: "finish"; readonly reason: "stop" | "tool-calls" | "length" | "filter" };
