// The internal description of tools, models and built-in stores. It is a hidden member of the public objects.

import type { SendRequest } from "../host/http.js";
import type { AgentState, Batch, JsonSchema, Model, ModelDelta, ModelRequest, Schema, SessionInfo, Slot, Store, Tool, ToolContext } from "../types.js";

/**
 * An option of `resend`, `switchBranch`, `fork`, `importSession` and `putAgentState`, for a host that serves clients: the caller
 * may not change permissions. It is a symbol, so that it cannot come from a client or from other users of the package.
 */
export const HOLDS_PERMISSIONS = Symbol("holds permissions");

/** Options with the mark that the caller may not change permissions. */
export interface Holding {
  readonly [HOLDS_PERMISSIONS]?: boolean;
}

/** The mark as Rust reads it. */
export function heldIn(options: Holding | undefined): { readonly holdsPermissions?: true } {
  return options?.[HOLDS_PERMISSIONS] === true ? { holdsPermissions: true } : {};
}

/** The methods of the agent in this process that take the mark. */
export interface HoldingMethods {
  switchBranch(slot: Slot, branch: string, options: Holding): Promise<void>;
  fork(slot: Slot, to: Slot, options: { readonly upTo?: string } & Holding): Promise<SessionInfo>;
  importSession(slot: Slot, text: string, options: Holding): Promise<SessionInfo>;
  putAgentState(slot: Slot, state: AgentState, options: Holding): Promise<void>;
}

const MARK = Symbol.for("lockgate.kind");

export interface ToolInternals {
  readonly kind: "tool";
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly schema: Schema;
  /** Absent if the tool runs outside of the agent. */
  readonly execute: ((input: unknown, context: ToolContext) => unknown) | undefined;
  readonly presets: Readonly<Record<string, unknown>> | undefined;
  readonly parallel: boolean;
  readonly timeoutMs: number | undefined;
  readonly readOnly: boolean;
  readonly needsApproval: boolean | ((input: unknown, context: ToolContext) => unknown);
  readonly permission: ((input: unknown, context: ToolContext) => unknown) | undefined;
  readonly matches: ((rule: string, input: unknown) => unknown) | undefined;
}

export interface ModelInternals {
  readonly kind: "model";
  readonly id: string;
  /** The context window in tokens, if the user has set it. */
  readonly contextWindow?: number | undefined;
  /** For models that JavaScript runs. */
  readonly generate?: (request: ModelRequest, options: { signal: AbortSignal }) => AsyncIterable<ModelDelta>;
  /** Whether it gets repaired conversations, which a provider accepts, in place of the original ones. */
  readonly repaired?: boolean;
  /** For models that Rust runs: dialect and options as JSON, and the function that sends requests. */
  readonly provider?: { readonly plain: string; readonly send: SendRequest };
}

export type OwnStore =
  | { readonly indexedDb: { readonly name: string; readonly durability: "strict" | "relaxed" } }
  | { readonly localStorage: { readonly name: string } };

export interface StoreInternals {
  readonly kind: "store";
  /** For stores that are written in Rust: their configuration. */
  readonly own?: OwnStore;
  /** For stores in memory: the methods without promises. */
  readonly sync?: SyncStore;
}

/** The methods of a store, with or without promises. Callers do not change values after passing them in or getting them. */
export interface SyncStore {
  get(keys: readonly string[]): unknown;
  list(prefix: string, page: Parameters<Store["list"]>[1]): unknown;
  commit(batch: Batch): unknown;
}

/** Adds the internal description to a public object, and freezes the object. */
export function marked<T extends object>(shown: object, kind: ToolInternals | ModelInternals | StoreInternals): T {
  return Object.freeze(Object.defineProperty(shown, MARK, { value: kind })) as T;
}

export const toolInternals = (value: unknown): ToolInternals | undefined => kindOf<ToolInternals>(value as Tool, "tool");
export const modelInternals = (value: unknown): ModelInternals | undefined => kindOf<ModelInternals>(value as Model, "model");
export const storeInternals = (value: unknown): StoreInternals | undefined => kindOf<StoreInternals>(value as Store, "store");

function kindOf<K extends { kind: string }>(value: object | null | undefined, kind: K["kind"]): K | undefined {
  if (typeof value !== "object" || value === null || !(MARK in value)) return undefined;
  const found = value[MARK as keyof typeof value] as K;
  return found.kind === kind ? found : undefined;
}
