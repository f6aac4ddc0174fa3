// The AgentState of a call under way, as its tools and hooks read it: paid for when it is read, and once.

import type { CoreCall } from "./core.js";
import { deepFrozen } from "./frozen.js";
import type { Mirrors } from "./mirror.js";
import type { AgentState, Msg } from "./types.js";

const FIELDS = [
  "format", "version", "revision", "session_id", "user_id", "summary", "permission_context", "plan_mode_context", "tasks_context",
  "tool_context", "shutdown_interrupted",
] as const satisfies readonly (keyof AgentState)[];
type Unlisted = Exclude<keyof AgentState, (typeof FIELDS)[number] | "context">;
const everyFieldIsListed: [Unlisted] extends [never] ? true : never = true;

/** Asks Rust, while the call is under way. */
type Read = <T>(ask: (core: CoreCall) => T | undefined) => T;

/** A state that asks Rust for what is read of it. */
export function stateOf(read: Read, mirrors: Mirrors): AgentState {
  let fields: Omit<AgentState, "context"> | undefined;
  let messages: readonly Msg[] | undefined;
  const state = {};
  const define = (name: string, get: () => unknown): object => Object.defineProperty(state, name, { enumerable: everyFieldIsListed, get });
  for (const name of FIELDS) define(name, () => (fields ??= deepFrozen(JSON.parse(read((core) => core.state())) as AgentState))[name]);
  define("context", () => (messages ??= read((core) => contextOf(core, mirrors))));
  return Object.freeze(state) as AgentState;
}

function contextOf(core: CoreCall, mirrors: Mirrors): readonly Msg[] | undefined {
  const shown = core.shown();
  if (shown === undefined) return undefined;
  const [lineage, unchanged] = shown as unknown as [number, number];
  const known = mirrors.known(lineage, unchanged);
  return mirrors.extend(lineage, core.added(known));
}
