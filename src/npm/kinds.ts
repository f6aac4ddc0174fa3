// What tools, models and built-in stores are underneath: public values carry it out of sight.

import type { Send } from "./http.js";
import type { Batch, JsonSchema, Model, ModelDelta, ModelRequest, Schema, Store, Tool, ToolContext } from "./types.js";

const MARK = Symbol.for("lockgate.kind");

export interface ToolKind {
  readonly kind: "tool";
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly schema: Schema;
  /** Absent: it is done outside. */
  readonly execute: ((input: unknown, context: ToolContext) => unknown) | undefined;
  readonly presets: Readonly<Record<string, unknown>> | undefined;
  readonly parallel: boolean;
  readonly timeoutMs: number | undefined;
  readonly readOnly: boolean;
  readonly needsApproval: boolean | ((input: unknown, context: ToolContext) => unknown);
  readonly permission: ((input: unknown, context: ToolContext) => unknown) | undefined;
  readonly matches: ((rule: string, input: unknown) => unknown) | undefined;
}

export interface ModelKind {
  readonly kind: "model";
  readonly id: string;
  /** How many tokens it takes, if its user says so. */
  readonly contextWindow?: number | undefined;
  /** JavaScript runs it. */
  readonly generate?: (request: ModelRequest, options: { signal: AbortSignal }) => AsyncIterable<ModelDelta>;
  /** It is given conversations that a provider would take, not just as they are. */
  readonly repaired?: boolean;
  /** Rust runs it: dialect and options as JSON, and how its requests are sent. */
  readonly provider?: { readonly plain: string; readonly send: Send };
}

export type OwnStore =
  | { readonly indexedDb: { readonly name: string; readonly durability: "strict" | "relaxed" } }
  | { readonly localStorage: { readonly name: string } };

export interface StoreKind {
  readonly kind: "store";
  /** Rust keeps it, by this configuration. */
  readonly own?: OwnStore;
  /** Its methods without promises, where the records are at hand. */
  readonly atHand?: AtHand;
}

/** The methods of a store, with or without promises. Values that are put are the store's own, those that it answers with are only read. */
export interface AtHand {
  get(keys: readonly string[]): unknown;
  list(prefix: string, page: Parameters<Store["list"]>[1]): unknown;
  commit(batch: Batch): unknown;
}

/** A public value that carries what it is underneath. */
export function marked<T extends object>(shown: object, kind: ToolKind | ModelKind | StoreKind): T {
  return Object.freeze(Object.defineProperty(shown, MARK, { value: kind })) as T;
}

export const toolKind = (value: unknown): ToolKind | undefined => kindOf<ToolKind>(value as Tool, "tool");
export const modelKind = (value: unknown): ModelKind | undefined => kindOf<ModelKind>(value as Model, "model");
export const storeKind = (value: unknown): StoreKind | undefined => kindOf<StoreKind>(value as Store, "store");

function kindOf<K extends { kind: string }>(value: object | null | undefined, kind: K["kind"]): K | undefined {
  if (typeof value !== "object" || value === null || !(MARK in value)) return undefined;
  const found = value[MARK as keyof typeof value] as K;
  return found.kind === kind ? found : undefined;
}
