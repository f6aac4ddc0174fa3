// Events of calls and of sessions.

import type { Reply } from "./call.js";
import type { CompactionReport } from "./compaction.js";
import type { ErrorCode, SerializedError } from "./error.js";
import type { Block, Msg, Usage } from "./message.js";
import type { Answer, Ask } from "./permission.js";
import type { SessionInfo, Slot } from "./session.js";
import type { PlanModeContext, Task } from "./state.js";
import type { StorageReport } from "./store.js";

/** An event of a call. Events come in order, and `seq` has no gaps. Only a remote agent with a slow connection may miss events that its worker did not keep. */
export type AgentEvent = EventBase &
  (
    /** The call has its place in the queue. Always the first event. `messageIds`: the ids of the input messages; empty if the call has none. `queued`, `accepted` or the end follows. */
    | { type: "call-start"; messageIds: readonly string[] }
    /** The call has to wait. `ahead`: how many calls come first. Sent again if another process then holds the session. `accepted` or the end follows. */
    | { type: "queued"; ahead: number }
    /** The input is stored, and the turn begins. With `overlap: "steer"`, the running call may have taken the input. Not sent if the call gets the stored outcome of its `callId`. */
    | { type: "accepted"; messages: readonly Msg[] }
    /** A model request begins. `iteration`: its number in the call, from 1; a retry has the same number. `model`: the id of the model. The events of the answer and `model-end` follow. */
    | { type: "model-start"; iteration: number; model: string }
    /** The model request has ended. `finish`: "stop", "tool-calls", "length", "filter", "interrupted" (the call was stopped), "error", or "unasked" (ended by a middleware before it was sent). */
    | { type: "model-end"; iteration: number; usage: Usage; finish: string }
    /** A text block of the answer begins. `messageId`: the message that will contain it. Deltas with the same `id` and `text-end` follow. */
    | { type: "text-start"; id: string; messageId: string }
    /** The text block is complete. */
    | { type: "text-end"; id: string }
    /** More text of the block `id`. Unread neighbouring deltas are joined. */
    | { type: "text-delta"; id: string; delta: string }
    /** A thinking block of the answer begins. `messageId`: the message that will contain it. Deltas with the same `id` and `thinking-end` follow. */
    | { type: "thinking-start"; id: string; messageId: string }
    /** The thinking block is complete. */
    | { type: "thinking-end"; id: string }
    /** More text of the thinking block `id`. Unread neighbouring deltas are joined. */
    | { type: "thinking-delta"; id: string; delta: string }
    /** The model begins to write a tool call. `name`: the tool. Deltas with the same `toolCallId` and `tool-call-end` follow. */
    | { type: "tool-call-start"; toolCallId: string; name: string }
    /** More of the arguments, as JSON text. */
    | { type: "tool-call-delta"; toolCallId: string; delta: string }
    /** The answer is complete, and `input` has the arguments; {} if they are not a JSON object. `tool-start` follows if the tool runs or the call is denied, `ask` if a person must approve. */
    | { type: "tool-call-end"; toolCallId: string; name: string; input: unknown }
    /** A tool call begins to run. Also sent if the call is denied, or if its result was handed in with `confirm`. `tool-end` follows. */
    | { type: "tool-start"; toolCallId: string; name: string }
    /** The tool has called `context.emit`, or yielded as a generator. `delta`: the text that it passed. */
    | { type: "tool-delta"; toolCallId: string; delta: string; block?: never }
    /** The same with a block in place of a text, for example an image while it is made. */
    | { type: "tool-delta"; toolCallId: string; block: Block; delta?: never }
    /** The tool call has ended. After the last one of an answer the model is asked again, or the turn ends. */
    | {
        type: "tool-end";
        /** The id of the tool call. */
        toolCallId: string;
        /** The name of the tool. */
        name: string;
        /** How it ended. "denied": it did not run. "interrupted": the call was stopped. "suspended": its result comes later, from outside. */
        state: "success" | "error" | "denied" | "interrupted" | "suspended";
        /** The result that the model reads: the output of the tool, or why there is none. */
        output: readonly Block[];
      }
    /** Tool calls wait for an approval or a result: `confirm` answers them. Sent when the turn ends; `saved` and `call-end` follow. */
    | { type: "ask"; asks: readonly Ask[] }
    /** The call takes the answers that were given to `confirm`. Sent after `accepted`; the tool calls that were answered follow. */
    | { type: "answered"; answers: readonly Answer[] }
    /** Older messages are replaced by a summary, or left out because a refused request must become smaller. `messages`, `tokens`: the size of the context. `compaction-end` or `compaction-failed` follows. `agent.compact` sends no event. */
    | { type: "compaction-start"; messages: number; tokens: number }
    /** The summary, or a note that they are left out, has replaced the older messages in the context. */
    | { type: "compaction-end"; report: CompactionReport }
    /** There is no summary, and the context is unchanged. The call goes on; if its request was refused, messages are left out next. `code`: COMPACTION_FAILED, ABORTED if the call was stopped, or the code of the store's error. */
    | { type: "compaction-failed"; code: ErrorCode; message: string }
    /** The model is shown only both ends of a large tool result. `chars`: its length. `path`: the file in the workspace that has all of it; empty without a workspace. */
    | { type: "evicted"; toolCallId: string; path: string; chars: number }
    /** The model refused a request as too large, and did not refuse a smaller one. `before` and `after`: the tokens of both, estimated. Sent after `model-end` of the smaller one. */
    | { type: "overflow-recovered"; before: number; after: number }
    /** A tool has changed the task list. `tasks`: the whole new list. `tool-end` of that tool follows. */
    | { type: "tasks"; tasks: readonly Task[] }
    /** A tool has changed the plan mode. `plan`: its new state. `tool-end` of that tool follows. */
    | { type: "plan"; plan: PlanModeContext }
    /** An event of a subagent. `agent`: the name of its kind. `event` has the slot, the callId and the seq of the call of the subagent. */
    | { type: "subagent"; taskId: string; agent: string; event: AgentEvent }
    /** A model request failed before its first delta, and is sent again after `waitMs`. `attempt`: the number of the next attempt, at least 2. `code`: why it failed. `model-start` follows. */
    | { type: "retry"; attempt: number; waitMs: number; code: ErrorCode }
    /** The model failed before its first delta, so `fallbackModel` is asked. `model`: its id. `model-start` follows. */
    | { type: "fallback"; model: string }
    /** A problem that does not stop the call. `code`: storage, schema, context_truncated, media, memory, skills, middleware, tool-output, text or waiting. `message`: for people. */
    | { type: "warning"; code: string; message: string }
    /** The messages so far are stored. `version`: the new version of the session. `bytes`: how much was written. Sent before the end, and with `durability: "step"` after every step. */
    | { type: "saved"; version: number; bytes: number }
    /** The call has ended without an error, and the session is free for the next one. The last event of a call that succeeds. */
    | { type: "call-end"; reply: Reply }
    /** The call has failed. The last event of a call that fails: the loop over the call then throws this error as a LockgateError. */
    | { type: "error"; error: SerializedError }
  );

/** An event of one type. */
export type AgentEventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

/** The members that every event of a call has. */
export interface EventBase {
  /** The session of the call. */
  readonly slot: Slot;
  /** The id of the call. */
  readonly callId: string;
  /** The number of the event in its call, from 0. Neighbouring deltas that were joined have one number. */
  readonly seq: number;
  /** When the event was read from the engine, in RFC 3339, UTC. */
  readonly at: string;
}

/** An event about a session, a user or the store, for listeners of `subscribe`. */
export type SessionEvent = {
  /** When it happened, in RFC 3339, UTC. */
  readonly at: string;
} & (
  /** A call of the session has begun or ended, its process is gone, or a method has changed the session. `info`: the session as lists show it; when a call has begun, `info.running` is true. */
  | { type: "session-changed"; slot: Slot; info: SessionInfo }
  /** The session was deleted, or a call on it has ended and it does not exist. */
  | { type: "session-deleted"; slot: Slot }
  /** `deleteUser` has deleted everything of the user. Null is the anonymous user. */
  | { type: "user-deleted"; userId: string | null }
  /** Not sent by this version. The first call with a reader gets `warning` events with the code "storage"; `agent.storage()` returns the report. */
  | { type: "storage"; report: StorageReport }
);
