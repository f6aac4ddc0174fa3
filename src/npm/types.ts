// Every public data type, from the file of its subject. The types are written by hand; tests/contract compares them with what Rust writes.

export type * from "./types/agent.js";
export type * from "./types/call.js";
export type * from "./types/compaction.js";
export type * from "./types/error.js";
export type * from "./types/event.js";
export type * from "./types/message.js";
export type * from "./types/middleware.js";
export type * from "./types/model.js";
export type * from "./types/permission.js";
export type * from "./types/planning.js";
export type * from "./types/schema.js";
export type { Branch, SearchHit, SessionInfo, Slot, UserInfo } from "./types/session.js";
export type * from "./types/state.js";
export type * from "./types/store.js";
export type { SubagentConfig } from "./types/subagent.js";
export type * from "./types/tool.js";
export type * from "./types/workspace.js";
