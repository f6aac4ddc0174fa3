// Compiled, never run: a method that is missing in one of its places does not compile.

import type { CoreAgent } from "../../src/npm/core.js";
import type { AgentMethods, MethodName, Table } from "../../src/npm/protocol/methods.js";
import { METHODS } from "../../src/npm/protocol/methods.js";
import type { remoteAgent } from "../../src/npm/remote/remote.js";
import type { Agent } from "../../src/npm/types.js";

/** Members of an agent that are not asked once and answered once over HTTP. */
type NotInTable =
  // Properties of the agent, and its files, whose methods have other names in the table.
  | "name" | "files"
  // Methods that answer with events or with lines.
  | "call" | "stream" | "confirm" | "resume" | "resend" | "attach" | "subscribe" | "exportUser"
  // A worker serves only the user of the request.
  | "listUsers"
  // The end of an agent.
  | "shutdown" | "drain" | "close" | typeof Symbol.asyncDispose;

/** Methods of the table that the wasm exports under another name, or that it does not need to answer. */
type NotExported =
  | "getAgentState" | "putAgentState" | "setPermissionMode" | "replacePermissions"
  | "listFiles" | "readFile" | "writeFile" | "deleteFile"
  | "storage";

/** `true` if two unions are the same, else what only one of them has. */
type Same<A, B> = [Exclude<A | B, A & B>] extends [never] ? true : Exclude<A | B, A & B>;

export const every_member_of_an_agent_is_in_the_table_or_a_named_exception: Same<keyof Agent, keyof AgentMethods | NotInTable> = true;
export const every_method_is_exported_by_the_wasm_or_a_named_exception: Same<MethodName, (keyof CoreAgent & MethodName) | NotExported> = true;
export const a_remote_agent_is_an_agent: (...given: Parameters<typeof remoteAgent>) => Agent = null! as typeof remoteAgent;

const { asks, history, ...others } = METHODS;
// @ts-expect-error a method without a row
export const forgotten: Table = { ...others, history };
// @ts-expect-error a row without a method
export const unknown: Table = { ...others, asks, history, guess: asks } satisfies Table;
// @ts-expect-error an argument that does not travel
export const argument_forgotten: Table = { ...others, asks, history: ["GET", "sessions/:id/history", "talk", [":id"]] };
// @ts-expect-error a member of an argument that does not travel
export const member_forgotten: Table = { ...others, asks, history: ["GET", "sessions/:id/history", "talk", [":id", { members: { before: "text", limit: "number" } }]] };
// @ts-expect-error a row without a right
export const right_forgotten: Table = { ...others, asks, history: ["GET", "sessions/:id/history", [":id", { members: { before: "text", limit: "number", branch: "text" } }]] };
// @ts-expect-error a right that does not exist
export const right_unknown: Table = { ...others, history, asks: ["GET", "sessions/:id/asks", "all", [":id"]] };
