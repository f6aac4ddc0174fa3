// Written by `cargo test contract`: one value of every kind, as Rust writes it. Do not edit.

import { CODES } from "../../src/npm/errors.js";
import type { AgentEvent, AgentState, Block, Msg, Reason, Reply, SessionInfo, Source } from "../../src/npm/types.js";

export const events = [
  {"type":"call-start","messageIds":["id"],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"queued","ahead":2,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"accepted","messages":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"model-start","iteration":1,"model":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"model-end","iteration":1,"usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"finish":"stop","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"text-start","id":"id","messageId":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"text-delta","id":"id","delta":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"text-end","id":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"thinking-start","id":"id","messageId":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"thinking-delta","id":"id","delta":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"thinking-end","id":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-call-start","toolCallId":"id","name":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-call-delta","toolCallId":"id","delta":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-call-end","toolCallId":"id","name":"id","input":{},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-start","toolCallId":"id","name":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-delta","toolCallId":"id","delta":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tool-end","toolCallId":"id","name":"id","state":"denied","output":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"ask","asks":[{"kind":"approval","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]},{"kind":"result","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]}],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"answered","answers":[{"approve":true,"toolCallId":"id"}],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"compaction-start","messages":1,"tokens":2,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"compaction-end","report":{"messagesBefore":9,"messagesAfter":1,"tokensBefore":9,"tokensAfter":1,"summary":"s"},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"compaction-failed","code":"COMPACTION_FAILED","message":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"evicted","toolCallId":"id","path":"id","chars":9,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"overflow-recovered","before":9,"after":1,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"tasks","tasks":[{"id":"t","subject":"s","state":"pending","priority":"high"},{"id":"t","subject":"s","state":"in_progress","priority":"high"},{"id":"t","subject":"s","state":"completed","priority":"high"}],"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"plan","plan":{"plan_active":true,"current_plan_file":"plans/PLAN.md"},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"retry","attempt":2,"waitMs":100,"code":"MODEL_OVERLOADED","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"fallback","model":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"warning","code":"id","message":"id","slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"saved","version":2,"bytes":100,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"call-end","reply":{"callId":"call","reason":"stop","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}},"text":"words","messages":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"output":{},"asks":[{"kind":"approval","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]}],"version":2},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"error","error":{"code":"MODEL_FAILED","message":"it failed","hint":"try again","retryable":false,"partial":{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
  {"type":"subagent","taskId":"id","agent":"id","event":{"type":"queued","ahead":1,"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
] as const satisfies readonly AgentEvent[];
export const all_events_are_seen: [Exclude<AgentEvent["type"], (typeof events)[number]["type"]>] extends [never] ? true : Exclude<AgentEvent["type"], (typeof events)[number]["type"]> = true;

export const blocks = [
  {"type":"text","text":"words"},
  {"type":"thinking","thinking":"hm","signature":"s"},
  {"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},
  {"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},
  {"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},
  {"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},
  {"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},
  {"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},
] as const satisfies readonly Block[];
export const all_blocks_are_seen: [Exclude<Block["type"], (typeof blocks)[number]["type"]>] extends [never] ? true : Exclude<Block["type"], (typeof blocks)[number]["type"]> = true;

export const messages = [
  {"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}},
] as const satisfies readonly Msg[];

export const sources = [
  {"type":"url","url":"u","mediaType":"image/png"},
  {"type":"base64","mediaType":"image/png","data":"AA=="},
] as const satisfies readonly Source[];
export const all_sources_are_seen: [Exclude<Source["type"], (typeof sources)[number]["type"]>] extends [never] ? true : Exclude<Source["type"], (typeof sources)[number]["type"]> = true;

export const replies = [
  {"callId":"call","reason":"stop","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}},"text":"words","messages":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"output":{},"asks":[{"kind":"approval","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]}],"version":2},
] as const satisfies readonly Reply[];

export const states = [
  {"format":1,"version":0,"revision":"","session_id":"s1","user_id":null,"context":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"summary":"","permission_context":{"mode":"accept_edits","allow_rules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}],"ask_rules":[{"tool_name":"tool","rule_content":null,"behavior":"ask","source":"user"}],"deny_rules":[{"tool_name":"tool","rule_content":null,"behavior":"deny","source":"user"}],"working_directories":["/"]},"plan_mode_context":{"plan_active":true,"current_plan_file":"plans/PLAN.md"},"tasks_context":{"tasks":[{"id":"t","subject":"s","state":"pending","priority":"high"},{"id":"t","subject":"s","state":"in_progress","priority":"high"},{"id":"t","subject":"s","state":"completed","priority":"high"}]},"tool_context":{"activated_groups":["g"],"activated_skills":["s"]},"shutdown_interrupted":true},
] as const satisfies readonly AgentState[];

export const sessions = [
  {"cursor":"","sessionId":"s1","userId":null,"title":"t","summary":"","messages":2,"updatedAt":"a","createdAt":"","running":false,"asking":false,"branches":0},
] as const satisfies readonly SessionInfo[];

interface Reasons { readonly reason: Reason }

export const reasons = [
  {"reason":"stop"},
  {"reason":"asking"},
  {"reason":"suspended"},
  {"reason":"interrupted"},
  {"reason":"max-iterations"},
  {"reason":"length"},
  {"reason":"middleware"},
  {"reason":"empty"},
] as const satisfies readonly Reasons[];
export const all_reasons_are_seen: [Exclude<Reason, (typeof reasons)[number]["reason"]>] extends [never] ? true : Exclude<Reason, (typeof reasons)[number]["reason"]> = true;

export const codes: typeof CODES = {
  OPTIONS: { status: 400, retryable: false },
  ID_INVALID: { status: 400, retryable: false },
  INPUT_INVALID: { status: 400, retryable: false },
  BUSY: { status: 429, retryable: true },
  REENTRANT: { status: 409, retryable: false },
  ABORTED: { status: 499, retryable: false },
  TIMEOUT: { status: 504, retryable: true },
  SUPERSEDED: { status: 409, retryable: false },
  SHUTTING_DOWN: { status: 503, retryable: true },
  NO_SUCH_SESSION: { status: 404, retryable: false },
  NO_ANCHOR: { status: 409, retryable: false },
  NOT_ASKING: { status: 409, retryable: false },
  PENDING_TOOLS: { status: 409, retryable: false },
  STORE_UNAVAILABLE: { status: 503, retryable: true },
  STORE_TIMEOUT: { status: 504, retryable: true },
  STORE_QUOTA: { status: 507, retryable: false },
  STORE_BLOCKED: { status: 503, retryable: true },
  STORE_CORRUPT: { status: 500, retryable: false },
  STATE_TOO_LARGE: { status: 413, retryable: false },
  STATE_VERSION: { status: 409, retryable: false },
  ENGINE_LOAD: { status: 500, retryable: true },
  ENGINE_CRASHED: { status: 500, retryable: true },
  MODEL_AUTH: { status: 401, retryable: false },
  MODEL_RATE_LIMIT: { status: 429, retryable: true },
  MODEL_OVERLOADED: { status: 503, retryable: true },
  MODEL_CONTEXT_OVERFLOW: { status: 413, retryable: false },
  MODEL_BAD_REQUEST: { status: 400, retryable: false },
  MODEL_TRUNCATED: { status: 502, retryable: true },
  MODEL_TIMEOUT: { status: 504, retryable: true },
  MODEL_NETWORK: { status: 502, retryable: true },
  MODEL_REFUSED: { status: 422, retryable: false },
  MODEL_FAILED: { status: 502, retryable: false },
  OUTPUT_INVALID: { status: 422, retryable: false },
  COMPACTION_FAILED: { status: 502, retryable: true },
  MIDDLEWARE: { status: 500, retryable: false },
  PATH_INVALID: { status: 400, retryable: false },
  INTERNAL: { status: 500, retryable: false },
};
