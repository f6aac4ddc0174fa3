// `context.state`: the AgentState of a running call. Each part is fetched from Rust when it is first read.

import type { CoreCall } from "../core.js";
import { deepFrozen } from "../values/frozen.js";
import type { MessageCache } from "./message-cache.js";
import type { AgentState, Msg } from "../types.js";

const FIELDS = [
  "format", "version", "revision", "session_id", "user_id", "summary", "permission_context", "plan_mode_context", "tasks_context",
  "tool_context", "shutdown_interrupted",
] as const satisfies readonly (keyof AgentState)[];
type UnlistedField = Exclude<keyof AgentState, (typeof FIELDS)[number] | "context">;
const everyFieldIsListed: [UnlistedField] extends [never] ? true : never = true;

/** Asks Rust about the running call. */
type Read = <T>(ask: (core: CoreCall) => T | undefined) => T;

/** An AgentState whose members ask Rust when they are first read. */
export function stateOf(read: Read, cache: MessageCache): AgentState {
  let fields: Omit<AgentState, "context"> | undefined;
  let messages: readonly Msg[] | undefined;
  const state = {};
  const define = (name: string, get: () => unknown): object => Object.defineProperty(state, name, { enumerable: everyFieldIsListed, get });
  for (const name of FIELDS) define(name, () => (fields ??= deepFrozen(JSON.parse(read((core) => core.state())) as AgentState))[name]);
  define("context", () => (messages ??= read((core) => contextOf(core, cache))));
  return Object.freeze(state) as AgentState;
}

function contextOf(core: CoreCall, cache: MessageCache): readonly Msg[] | undefined {
  const shown = core.shown();
  if (shown === undefined) return undefined;
  const [lineage, unchanged] = shown as unknown as [number, number];
  const known = cache.known(lineage, unchanged);
  return cache.extend(lineage, core.added(known));
}
