//! Rust and TypeScript cannot drift: one value of every kind, as Rust writes it, goes into a file that `tsc` compares
//! with the public types.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use lockgate::engine::{ContextReport, Part, ToolInfo};
use lockgate::error::ErrorKind;
use lockgate::event::*;
use lockgate::json::to_value;
use lockgate::message::*;
use lockgate::slot::Slot;
use lockgate::state::*;
use lockgate::store::format::session_info::SessionInfo;
use lockgate::store::operations::branches::Branch;
use lockgate::store::operations::users::UserInfo;
use lockgate::store::search::SearchHit;
use serde::Serialize;
use serde_json::{Value, json};

#[test]
fn contract_values_are_written_for_typescript() {
    let mut out = String::from(
        "// Written by `cargo test contract`: one value of every kind, as Rust writes it. Do not edit.\n\n\
         import { CODES } from \"../../src/npm/errors.js\";\n\
         import type {\n  \
         AgentEvent, AgentState, Ask, Block, Branch, CompactionReport, ContextReport, Msg, Note, PermissionContext, Reason, Reply, SearchHit,\n  \
         SessionInfo, Source, ToolInfo, UserInfo,\n\
         } from \"../../src/npm/types.js\";\n",
    );
    out.push_str("\ntype KeysOf<T> = T extends unknown ? keyof T : never;\n");
    list(&mut out, "events", "AgentEvent", &events());
    seen(&mut out, "events", "AgentEvent[\"type\"]", "type");
    list(&mut out, "blocks", "Block", &blocks());
    seen(&mut out, "blocks", "Block[\"type\"]", "type");
    list(&mut out, "messages", "Msg", &[message(), failed_question()]);
    list(&mut out, "sources", "Source", &[url(), bytes()]);
    seen(&mut out, "sources", "Source[\"type\"]", "type");
    list(&mut out, "replies", "Reply", &[reply()]);
    list(&mut out, "states", "AgentState", &[state()]);
    list(&mut out, "sessions", "SessionInfo", &[info()]);
    list(&mut out, "tools", "ToolInfo", &[tool()]);
    list(&mut out, "asks", "Ask", &[ask(AskKind::Approval), ask(AskKind::Result)]);
    list(&mut out, "permissions", "PermissionContext", &[facts().permission_context]);
    list(&mut out, "compactions", "CompactionReport", &[report()]);
    list(&mut out, "contexts", "ContextReport", &contexts());
    list(&mut out, "parts", "ContextReport[\"parts\"][number]", &parts());
    seen(&mut out, "parts", "ContextReport[\"parts\"][number][\"kind\"]", "kind");
    list(&mut out, "branches", "Branch", &branches());
    list(&mut out, "hits", "SearchHit", &[hit()]);
    list(&mut out, "users", "UserInfo", &[user()]);
    let reasons = "interface Reasons { readonly reason: Reason }";
    writeln!(out, "\n{reasons}").unwrap();
    list(&mut out, "reasons", "Reasons", &reasons_of());
    seen(&mut out, "reasons", "Reason", "reason");
    let notes: Vec<Value> = Note::ALL.iter().map(|note| json!({ "note": note.word() })).collect();
    writeln!(out, "\ninterface Notes {{ readonly note: Note }}").unwrap();
    list(&mut out, "notes", "Notes", &notes);
    seen(&mut out, "notes", "Note", "note");
    codes(&mut out);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/values.ts");
    if fs::read_to_string(&path).unwrap_or_default() != out {
        fs::write(path, out).unwrap();
    }
}

fn list<T: Serialize>(out: &mut String, name: &str, kind: &str, values: &[T]) {
    writeln!(out, "\nexport const {name} = [").unwrap();
    for value in values {
        writeln!(out, "  {},", serde_json::to_string(value).unwrap()).unwrap();
    }
    writeln!(out, "] as const satisfies readonly {kind}[];").unwrap();
    // Fails to compile if TypeScript knows a member that no value of the list has.
    let unseen = format!("Exclude<KeysOf<{kind}>, KeysOf<(typeof {name})[number]>>");
    writeln!(
        out,
        "export const all_members_of_{name}_are_seen: [{unseen}] extends [never] ? true : {unseen} = true;"
    )
    .unwrap();
}

/// Fails to compile if TypeScript knows a kind that the list does not have.
fn seen(out: &mut String, name: &str, all: &str, member: &str) {
    let unseen = format!("Exclude<{all}, (typeof {name})[number][\"{member}\"]>");
    writeln!(
        out,
        "export const all_{name}_are_seen: [{unseen}] extends [never] ? true : {unseen} = true;"
    )
    .unwrap();
}

/// Fails to compile if a code, its status or its being retryable differs.
fn codes(out: &mut String) {
    writeln!(out, "\nexport const codes: typeof CODES = {{").unwrap();
    for kind in ErrorKind::ALL {
        let (status, retryable) = (kind.status(), kind.is_retryable());
        writeln!(out, "  {}: {{ status: {status}, retryable: {retryable} }},", kind.code())
            .unwrap();
    }
    writeln!(out, "}};").unwrap();
}

fn events() -> Vec<Stamped> {
    let id = || "id".to_owned();
    let bare = vec![
        Event::CallStart { message_ids: vec![id()] },
        Event::Queued { ahead: 2 },
        Event::Accepted { messages: vec![Rc::new(message())] },
        Event::ModelStart { iteration: 1, model: id() },
        Event::ModelEnd { iteration: 1, usage: usage(), finish: "stop".into() },
        Event::TextStart { id: id(), message_id: id() },
        Event::TextDelta { id: id(), delta: id() },
        Event::TextEnd { id: id() },
        Event::ThinkingStart { id: id(), message_id: id() },
        Event::ThinkingDelta { id: id(), delta: id() },
        Event::ThinkingEnd { id: id() },
        Event::ToolCallStart { tool_call_id: id(), name: id() },
        Event::ToolCallDelta { tool_call_id: id(), delta: id() },
        Event::ToolCallEnd { tool_call_id: id(), name: id(), input: json!({}) },
        Event::ToolStart { tool_call_id: id(), name: id() },
        Event::ToolDelta { tool_call_id: id(), delta: id() },
        Event::ToolBlock { tool_call_id: id(), block: Block::text("t") },
        Event::ToolEnd {
            tool_call_id: id(),
            name: id(),
            state: ResultState::Denied,
            output: blocks(),
        },
        Event::Ask { asks: vec![ask(AskKind::Approval), ask(AskKind::Result)] },
        Event::Answered { answers: vec![json!({ "toolCallId": "id", "approve": true })] },
        Event::CompactionStart { messages: 1, tokens: 2 },
        Event::CompactionEnd { report: report() },
        Event::CompactionFailed { code: ErrorKind::CompactionFailed.code(), message: id() },
        Event::Evicted { tool_call_id: id(), path: id(), chars: 9 },
        Event::OverflowRecovered { before: 9, after: 1 },
        Event::Tasks { tasks: facts().tasks_context.tasks },
        Event::Plan { plan: facts().plan_mode_context },
        Event::Retry { attempt: 2, wait_ms: 100, code: ErrorKind::ModelOverloaded.code() },
        Event::Fallback { model: id() },
        Event::Warning { code: id(), message: id() },
        Event::Saved { version: 2, bytes: 100 },
        Event::CallEnd { reply: Rc::new(reply()) },
        Event::Error { error: SerializedError::new(&error(), Some(Rc::new(message()))) },
    ];
    let child = Box::new(stamp(Event::Queued { ahead: 1 }));
    let nested = Event::Subagent { task_id: id(), agent: id(), event: child };
    bare.into_iter().chain([nested]).map(stamp).collect()
}

fn stamp(event: Event) -> Stamped {
    Stamped { event, slot: slot(), call_id: "call".into(), seq: 0, at: rfc3339(0.0) }
}

fn tool() -> ToolInfo {
    ToolInfo {
        name: "forecast".into(),
        description: "the weather of tomorrow".into(),
        input_schema: json!({ "type": "object" }),
        source: "agent",
        read_only: true,
        active: false,
    }
}

fn slot() -> Slot {
    Slot::new(None, "s1").unwrap()
}

fn error() -> lockgate::error::Error {
    lockgate::error::Error::new(ErrorKind::ModelFailed, "it failed").hint("try again")
}

fn usage() -> Usage {
    Usage { input_tokens: 1, output_tokens: 2, cached_tokens: 3, seconds: 0.5 }
}

fn message() -> Message {
    Message {
        id: "m1".into(),
        at: rfc3339(0.0),
        name: Some("Alice".into()),
        usage: Some(usage()),
        metadata: Some(json!({ "free": 1 }).as_object().unwrap().clone()),
        ..Message::draft(Role::Assistant, blocks())
    }
}

fn failed_question() -> Message {
    let asked = Message::draft(Role::User, vec![Block::text("why?")]);
    let mut message = Message { id: "m2".into(), at: rfc3339(0.0), ..asked };
    message.set_turn(&TurnState::Failed(ErrorKind::ModelAuth.code().into(), "the key".into()));
    message
}

fn url() -> Source {
    Source::Url { url: "u".into(), media_type: Some("image/png".into()) }
}

fn bytes() -> Source {
    Source::Base64 { media_type: "image/png".into(), data: "AA==".into() }
}

fn blocks() -> Vec<Block> {
    let call = ToolUse {
        id: "c1".into(),
        name: "tool".into(),
        input: json!({ "a": 1 }),
        state: CallState::Asking,
        awaits: Some("outside".into()),
        asked: None,
        provider: Some(json!({})),
        rest: Default::default(),
    };
    let result = ToolResult::new(&call, ResultState::Suspended, "later");
    let media = |kind, source| Block::Media {
        kind,
        source,
        name: Some("n".into()),
        rest: Default::default(),
    };
    vec![
        Block::text("words"),
        Block::Thinking {
            thinking: "hm".into(),
            signature: Some("s".into()),
            provider: None,
            rest: Default::default(),
        },
        Block::ToolUse(call),
        Block::ToolResult(result),
        media(MediaKind::Image, url()),
        media(MediaKind::Audio, bytes()),
        media(MediaKind::Video, url()),
        media(MediaKind::File, bytes()),
    ]
}

fn ask(kind: AskKind) -> Ask {
    let rule = facts().permission_context.allow_rules;
    Ask {
        kind,
        tool_call_id: "c1".into(),
        name: "tool".into(),
        input: Value::Null,
        reason: "why".into(),
        suggested_rules: rule,
    }
}

fn report() -> CompactionReport {
    CompactionReport {
        messages_before: 9,
        messages_after: 1,
        tokens_before: 9,
        tokens_after: 1,
        summary: "s".into(),
    }
}

fn reply() -> Reply {
    let message = Rc::new(message());
    Reply {
        call_id: "call".into(),
        reason: Reason::Stop,
        text: message.text(),
        messages: vec![Rc::clone(&message)],
        message,
        usage: usage(),
        output: Some(json!({})),
        asks: vec![ask(AskKind::Approval)],
        version: 2,
    }
}

fn facts() -> Facts {
    let rule = |behavior| Rule {
        tool_name: "tool".into(),
        rule_content: None,
        behavior,
        source: "user".into(),
        rest: Default::default(),
    };
    let task = |state| Task {
        id: "t".into(),
        subject: "s".into(),
        state,
        priority: Some("high".into()),
        rest: Default::default(),
    };
    Facts {
        permission_context: PermissionContext {
            mode: PermissionMode::AcceptEdits,
            allow_rules: vec![rule(Behavior::Allow)],
            ask_rules: vec![rule(Behavior::Ask)],
            deny_rules: vec![rule(Behavior::Deny)],
            working_directories: vec!["/".into()],
            rest: Default::default(),
        },
        plan_mode_context: PlanModeContext {
            plan_active: true,
            current_plan_file: Some("plans/PLAN.md".into()),
            rest: Default::default(),
        },
        tasks_context: TasksContext {
            tasks: vec![
                task(TaskState::Pending),
                task(TaskState::InProgress),
                task(TaskState::Completed),
            ],
            rest: Default::default(),
        },
        tool_context: ToolContext {
            activated_groups: vec!["g".into()],
            activated_skills: vec!["s".into()],
            rest: Default::default(),
        },
        shutdown_interrupted: true,
        rest: Default::default(),
    }
}

fn state() -> AgentState {
    AgentState { context: vec![Rc::new(message())], facts: facts(), ..AgentState::fresh(&slot()) }
}

fn info() -> SessionInfo {
    let stored =
        json!({ "sessionId": "s1", "userId": null, "title": "t", "messages": 2, "updatedAt": "a" });
    SessionInfo::from_json(&stored).unwrap()
}

fn parts() -> Vec<Part> {
    let part = |kind| Part {
        kind,
        message_id: Some("m1".into()),
        replaces: None,
        evicted_to: None,
        tokens: 3,
        text: "words".into(),
    };
    let replaces = Some(json!({ "first": "m1", "last": "m9", "messages": 9 }));
    let evicted_to = Some("tool-results/m1.txt".into());
    vec![
        Part { message_id: None, ..part("system") },
        Part { message_id: None, ..part("tools") },
        Part { replaces, ..part("summary") },
        Part { evicted_to, ..part("message") },
        part("reminder"),
    ]
}

fn contexts() -> Vec<ContextReport> {
    let windows = [Some(8_000), None];
    windows.map(|window| ContextReport { window, tokens: 15, parts: parts() }).into()
}

fn branches() -> Vec<Branch> {
    let branch = |parent: Option<&str>| Branch {
        id: "2.b".into(),
        parent: parent.map(str::to_owned),
        message_id: "m1".into(),
        created_at: rfc3339(0.0),
        text: "t".into(),
        current: parent.is_some(),
    };
    vec![branch(None), branch(Some("1.a"))]
}

fn hit() -> SearchHit {
    let (excerpt, at) = ("the words".into(), rfc3339(0.0));
    SearchHit { slot: slot(), message_id: "m1".into(), role: Role::User, at, excerpt, score: 0.5 }
}

fn user() -> UserInfo {
    UserInfo {
        user_id: Some("alice".into()),
        sessions: 2,
        updated_at: "a".into(),
        cursor: "c".into(),
    }
}

#[test]
fn contract_values_are_read_back_as_they_were_written() {
    let blocks = blocks();
    let read: Vec<Block> =
        blocks.iter().map(|it| Block::from_json(&to_value(it)).unwrap()).collect();
    assert_eq!(read, blocks);
    assert_eq!(Message::from_json(&to_value(&message())).unwrap(), message());
    let state = to_value(&state());
    assert_eq!(Facts::from_json(&state).unwrap().permission_context, facts().permission_context);
    let permissions = to_value(&facts().permission_context);
    assert_eq!(PermissionContext::from_json(&permissions).unwrap(), facts().permission_context);
    let info = info();
    assert_eq!(to_value(&SessionInfo::from_json(&to_value(&info)).unwrap()), to_value(&info));
}

fn reasons_of() -> Vec<Value> {
    Reason::ALL.iter().map(|reason| json!({ "reason": to_value(reason) })).collect()
}
