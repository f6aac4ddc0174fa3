// Written by `cargo test contract`: one value of every kind, as Rust writes it. Do not edit.

import { CODES } from "../../src/npm/errors.js";
import type {
  AgentEvent, AgentState, Ask, Block, Branch, CompactionReport, ContextReport, Msg, Note, PermissionContext, Reason, Reply, SearchHit,
  SessionInfo, Source, ToolInfo, UserInfo,
} from "../../src/npm/types.js";

type KeysOf<T> = T extends unknown ? keyof T : never;

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
  {"type":"tool-delta","toolCallId":"id","block":{"type":"text","text":"t"},"slot":{"sessionId":"s1","userId":null},"callId":"call","seq":0,"at":"1970-01-01T00:00:00.000Z"},
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
export const all_members_of_events_are_seen: [Exclude<KeysOf<AgentEvent>, KeysOf<(typeof events)[number]>>] extends [never] ? true : Exclude<KeysOf<AgentEvent>, KeysOf<(typeof events)[number]>> = true;
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
export const all_members_of_blocks_are_seen: [Exclude<KeysOf<Block>, KeysOf<(typeof blocks)[number]>>] extends [never] ? true : Exclude<KeysOf<Block>, KeysOf<(typeof blocks)[number]>> = true;
export const all_blocks_are_seen: [Exclude<Block["type"], (typeof blocks)[number]["type"]>] extends [never] ? true : Exclude<Block["type"], (typeof blocks)[number]["type"]> = true;

export const messages = [
  {"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}},
  {"id":"m2","role":"user","content":[{"type":"text","text":"why?"}],"at":"1970-01-01T00:00:00.000Z","turn":"failed","turnError":{"code":"MODEL_AUTH","message":"the key"}},
] as const satisfies readonly Msg[];
export const all_members_of_messages_are_seen: [Exclude<KeysOf<Msg>, KeysOf<(typeof messages)[number]>>] extends [never] ? true : Exclude<KeysOf<Msg>, KeysOf<(typeof messages)[number]>> = true;

export const sources = [
  {"type":"url","url":"u","mediaType":"image/png"},
  {"type":"base64","mediaType":"image/png","data":"AA=="},
] as const satisfies readonly Source[];
export const all_members_of_sources_are_seen: [Exclude<KeysOf<Source>, KeysOf<(typeof sources)[number]>>] extends [never] ? true : Exclude<KeysOf<Source>, KeysOf<(typeof sources)[number]>> = true;
export const all_sources_are_seen: [Exclude<Source["type"], (typeof sources)[number]["type"]>] extends [never] ? true : Exclude<Source["type"], (typeof sources)[number]["type"]> = true;

export const replies = [
  {"callId":"call","reason":"stop","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}},"text":"words","messages":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"output":{},"asks":[{"kind":"approval","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]}],"version":2},
] as const satisfies readonly Reply[];
export const all_members_of_replies_are_seen: [Exclude<KeysOf<Reply>, KeysOf<(typeof replies)[number]>>] extends [never] ? true : Exclude<KeysOf<Reply>, KeysOf<(typeof replies)[number]>> = true;

export const states = [
  {"format":1,"version":0,"revision":"","session_id":"s1","user_id":null,"context":[{"id":"m1","role":"assistant","content":[{"type":"text","text":"words"},{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"tool","input":{"a":1},"state":"asking","awaits":"outside","provider":{}},{"type":"tool_result","id":"c1","name":"tool","output":[{"type":"text","text":"later"}],"state":"suspended"},{"type":"image","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"audio","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"},{"type":"video","source":{"type":"url","url":"u","mediaType":"image/png"},"name":"n"},{"type":"file","source":{"type":"base64","mediaType":"image/png","data":"AA=="},"name":"n"}],"name":"Alice","at":"1970-01-01T00:00:00.000Z","usage":{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"seconds":0.5},"metadata":{"free":1}}],"summary":"","permission_context":{"mode":"accept_edits","allow_rules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}],"ask_rules":[{"tool_name":"tool","rule_content":null,"behavior":"ask","source":"user"}],"deny_rules":[{"tool_name":"tool","rule_content":null,"behavior":"deny","source":"user"}],"working_directories":["/"]},"plan_mode_context":{"plan_active":true,"current_plan_file":"plans/PLAN.md"},"tasks_context":{"tasks":[{"id":"t","subject":"s","state":"pending","priority":"high"},{"id":"t","subject":"s","state":"in_progress","priority":"high"},{"id":"t","subject":"s","state":"completed","priority":"high"}]},"tool_context":{"activated_groups":["g"],"activated_skills":["s"]},"shutdown_interrupted":true},
] as const satisfies readonly AgentState[];
export const all_members_of_states_are_seen: [Exclude<KeysOf<AgentState>, KeysOf<(typeof states)[number]>>] extends [never] ? true : Exclude<KeysOf<AgentState>, KeysOf<(typeof states)[number]>> = true;

export const sessions = [
  {"cursor":"","sessionId":"s1","userId":null,"title":"t","summary":"","messages":2,"updatedAt":"a","createdAt":"","running":false,"asking":false,"interrupted":false,"branches":0},
] as const satisfies readonly SessionInfo[];
export const all_members_of_sessions_are_seen: [Exclude<KeysOf<SessionInfo>, KeysOf<(typeof sessions)[number]>>] extends [never] ? true : Exclude<KeysOf<SessionInfo>, KeysOf<(typeof sessions)[number]>> = true;

export const tools = [
  {"name":"forecast","description":"the weather of tomorrow","inputSchema":{"type":"object"},"source":"agent","readOnly":true,"active":false},
] as const satisfies readonly ToolInfo[];
export const all_members_of_tools_are_seen: [Exclude<KeysOf<ToolInfo>, KeysOf<(typeof tools)[number]>>] extends [never] ? true : Exclude<KeysOf<ToolInfo>, KeysOf<(typeof tools)[number]>> = true;

export const asks = [
  {"kind":"approval","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]},
  {"kind":"result","toolCallId":"c1","name":"tool","input":null,"reason":"why","suggestedRules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}]},
] as const satisfies readonly Ask[];
export const all_members_of_asks_are_seen: [Exclude<KeysOf<Ask>, KeysOf<(typeof asks)[number]>>] extends [never] ? true : Exclude<KeysOf<Ask>, KeysOf<(typeof asks)[number]>> = true;

export const permissions = [
  {"mode":"accept_edits","allow_rules":[{"tool_name":"tool","rule_content":null,"behavior":"allow","source":"user"}],"ask_rules":[{"tool_name":"tool","rule_content":null,"behavior":"ask","source":"user"}],"deny_rules":[{"tool_name":"tool","rule_content":null,"behavior":"deny","source":"user"}],"working_directories":["/"]},
] as const satisfies readonly PermissionContext[];
export const all_members_of_permissions_are_seen: [Exclude<KeysOf<PermissionContext>, KeysOf<(typeof permissions)[number]>>] extends [never] ? true : Exclude<KeysOf<PermissionContext>, KeysOf<(typeof permissions)[number]>> = true;

export const compactions = [
  {"messagesBefore":9,"messagesAfter":1,"tokensBefore":9,"tokensAfter":1,"summary":"s"},
] as const satisfies readonly CompactionReport[];
export const all_members_of_compactions_are_seen: [Exclude<KeysOf<CompactionReport>, KeysOf<(typeof compactions)[number]>>] extends [never] ? true : Exclude<KeysOf<CompactionReport>, KeysOf<(typeof compactions)[number]>> = true;

export const contexts = [
  {"window":8000,"tokens":15,"parts":[{"kind":"system","tokens":3,"text":"words"},{"kind":"tools","tokens":3,"text":"words"},{"kind":"summary","messageId":"m1","replaces":{"first":"m1","last":"m9","messages":9},"tokens":3,"text":"words"},{"kind":"message","messageId":"m1","evictedTo":"tool-results/m1.txt","tokens":3,"text":"words"},{"kind":"reminder","messageId":"m1","tokens":3,"text":"words"}]},
  {"window":null,"tokens":15,"parts":[{"kind":"system","tokens":3,"text":"words"},{"kind":"tools","tokens":3,"text":"words"},{"kind":"summary","messageId":"m1","replaces":{"first":"m1","last":"m9","messages":9},"tokens":3,"text":"words"},{"kind":"message","messageId":"m1","evictedTo":"tool-results/m1.txt","tokens":3,"text":"words"},{"kind":"reminder","messageId":"m1","tokens":3,"text":"words"}]},
] as const satisfies readonly ContextReport[];
export const all_members_of_contexts_are_seen: [Exclude<KeysOf<ContextReport>, KeysOf<(typeof contexts)[number]>>] extends [never] ? true : Exclude<KeysOf<ContextReport>, KeysOf<(typeof contexts)[number]>> = true;

export const parts = [
  {"kind":"system","tokens":3,"text":"words"},
  {"kind":"tools","tokens":3,"text":"words"},
  {"kind":"summary","messageId":"m1","replaces":{"first":"m1","last":"m9","messages":9},"tokens":3,"text":"words"},
  {"kind":"message","messageId":"m1","evictedTo":"tool-results/m1.txt","tokens":3,"text":"words"},
  {"kind":"reminder","messageId":"m1","tokens":3,"text":"words"},
] as const satisfies readonly ContextReport["parts"][number][];
export const all_members_of_parts_are_seen: [Exclude<KeysOf<ContextReport["parts"][number]>, KeysOf<(typeof parts)[number]>>] extends [never] ? true : Exclude<KeysOf<ContextReport["parts"][number]>, KeysOf<(typeof parts)[number]>> = true;
export const all_parts_are_seen: [Exclude<ContextReport["parts"][number]["kind"], (typeof parts)[number]["kind"]>] extends [never] ? true : Exclude<ContextReport["parts"][number]["kind"], (typeof parts)[number]["kind"]> = true;

export const branches = [
  {"id":"2.b","parent":null,"messageId":"m1","createdAt":"1970-01-01T00:00:00.000Z","text":"t","current":false},
  {"id":"2.b","parent":"1.a","messageId":"m1","createdAt":"1970-01-01T00:00:00.000Z","text":"t","current":true},
] as const satisfies readonly Branch[];
export const all_members_of_branches_are_seen: [Exclude<KeysOf<Branch>, KeysOf<(typeof branches)[number]>>] extends [never] ? true : Exclude<KeysOf<Branch>, KeysOf<(typeof branches)[number]>> = true;

export const hits = [
  {"slot":{"sessionId":"s1","userId":null},"messageId":"m1","role":"user","at":"1970-01-01T00:00:00.000Z","excerpt":"the words","score":0.5},
] as const satisfies readonly SearchHit[];
export const all_members_of_hits_are_seen: [Exclude<KeysOf<SearchHit>, KeysOf<(typeof hits)[number]>>] extends [never] ? true : Exclude<KeysOf<SearchHit>, KeysOf<(typeof hits)[number]>> = true;

export const users = [
  {"userId":"alice","sessions":2,"updatedAt":"a","cursor":"c"},
] as const satisfies readonly UserInfo[];
export const all_members_of_users_are_seen: [Exclude<KeysOf<UserInfo>, KeysOf<(typeof users)[number]>>] extends [never] ? true : Exclude<KeysOf<UserInfo>, KeysOf<(typeof users)[number]>> = true;

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
export const all_members_of_reasons_are_seen: [Exclude<KeysOf<Reasons>, KeysOf<(typeof reasons)[number]>>] extends [never] ? true : Exclude<KeysOf<Reasons>, KeysOf<(typeof reasons)[number]>> = true;
export const all_reasons_are_seen: [Exclude<Reason, (typeof reasons)[number]["reason"]>] extends [never] ? true : Exclude<Reason, (typeof reasons)[number]["reason"]> = true;

interface Notes { readonly note: Note }

export const notes = [
  {"note":"cut-off"},
  {"note":"blank-answer"},
  {"note":"task-result"},
  {"note":"left-out"},
] as const satisfies readonly Notes[];
export const all_members_of_notes_are_seen: [Exclude<KeysOf<Notes>, KeysOf<(typeof notes)[number]>>] extends [never] ? true : Exclude<KeysOf<Notes>, KeysOf<(typeof notes)[number]>> = true;
export const all_notes_are_seen: [Exclude<Note, (typeof notes)[number]["note"]>] extends [never] ? true : Exclude<Note, (typeof notes)[number]["note"]> = true;

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
  UNAUTHORIZED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
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
