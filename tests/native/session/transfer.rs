//! A session that is moved is whole: documents of version 2, of version 1 and of AgentScope.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;
use std::task::Poll;

use crate::compaction::window::*;
use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Ended, Format, RuntimeContext};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message, ResultState};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{
    Batch, Capabilities, Committed, Opinion, OwnDecision, Page, Record, Store, Tool, ToolRun,
    ToolSpec,
};
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::format::session_info::SessionInfo;
use serde_json::{Value, json};

const FIRST: &str = include_str!("../../fixtures/document-1.json");
const FIRST_PLAIN: &str = include_str!("../../fixtures/document-1-plain.json");
const COMPACTED: &str = include_str!("../../fixtures/agentscope/compacted.json");

/// An agent on a store of its own, which compacts and has a workspace.
fn windowed() -> (Agent, Rc<Windowed>) {
    let model = Rc::new(Windowed::default());
    let set = |options: &mut lockgate::engine::Options| {
        options.compaction.keep_messages = 4;
        options.workspace = Some(Default::default());
        options.eviction = Some(Default::default());
    };
    (set_up(&memory(), &model, set).build().unwrap(), model)
}

fn talk(agent: &Agent, n: usize) {
    for turn in 0..n {
        ask(agent, "s", &format!("question {turn}: {}", "words and words ".repeat(9))).unwrap();
    }
}

fn exported(agent: &Agent) -> String {
    block_on(agent.export_session(&slot("s"), Format::Lockgate)).unwrap()
}

fn imported(agent: &Agent, document: &str) -> SessionInfo {
    block_on(agent.import_session(&slot("s"), document).unwrap()).unwrap().unwrap()
}

/// Moves the session to another agent. There it is exported as the same document.
fn moved(from: &Agent, to: &Agent) -> SessionInfo {
    let document = exported(from);
    let info = imported(to, &document);
    assert_eq!(parsed(&exported(to)), parsed(&document));
    info
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn state(agent: &Agent) -> Value {
    json!(block_on(agent.state(&slot("s"))).unwrap())
}

/// What readers see of a session, without what is different in another store.
fn seen(agent: &Agent) -> Value {
    let mut state = state(agent);
    for name in ["version", "revision"] {
        state.as_object_mut().unwrap().remove(name);
    }
    let history = block_on(agent.history(&slot("s"), None, 1_000)).unwrap();
    let branches = block_on(agent.branches(&slot("s"))).unwrap();
    json!([state, history, branches, block_on(agent.asks(&slot("s"))).unwrap()])
}

fn undo(agent: &Agent) {
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
}

fn compact(agent: &Agent) {
    block_on(agent.compact(&slot("s"))).unwrap();
}

fn resend(agent: &Agent, text: Option<&str>) -> Ended {
    let messages = text.map(said).unwrap_or_default();
    let request = CallRequest { messages, resends: true, ..request("s", "") };
    block_on(agent.begin(request).unwrap().finish())
}

fn listed(agent: &Agent) -> SessionInfo {
    block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap().remove(0)
}

#[test]
fn a_compacted_session_is_moved_with_its_summary_and_what_it_replaces() {
    let ((from, _), (to, _)) = (windowed(), windowed());
    talk(&from, 6);
    compact(&from);
    talk(&from, 4);
    compact(&from);
    talk(&from, 1);
    moved(&from, &to);
    assert_eq!(seen(&to), seen(&from));
    assert_eq!(state(&to)["summary"], "what was said");
    assert_eq!(block_on(to.history(&slot("s"), None, 1_000)).unwrap().len(), 22);
    for _ in 0..3 {
        undo(&from);
        undo(&to);
        assert_eq!(seen(&to), seen(&from));
    }
    assert_eq!(
        (state(&to)["summary"].as_str(), state(&to)["context"].as_array().unwrap().len()),
        (Some(""), 22)
    );
}

#[test]
fn a_session_is_moved_with_its_branches_and_its_last_question() {
    let ((from, _), (to, model)) = (windowed(), windowed());
    talk(&from, 3);
    resend(&from, None).unwrap();
    resend(&from, Some("another question")).unwrap();
    talk(&from, 1);
    let info = moved(&from, &to);
    assert_eq!((info.branches, info.messages, info.title), (2, 8, listed(&from).title));
    assert_eq!(info.created_at, listed(&from).created_at);
    assert_eq!(seen(&to), seen(&from));
    let other = block_on(to.branches(&slot("s"))).unwrap()[0].id.clone();
    for agent in [&from, &to] {
        block_on(agent.switch_branch(&slot("s"), other.clone())).unwrap();
    }
    assert_eq!(seen(&to), seen(&from));
    resend(&to, None).unwrap();
    assert_eq!(model.last().len(), 5);
    assert_eq!(block_on(to.branches(&slot("s"))).unwrap().len(), 4);
}

#[test]
fn an_evicted_result_is_moved_whole_and_shown_as_it_was() {
    let ((from, model), (to, _)) = (windowed(), windowed());
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    ask(&from, "s", "many letters").unwrap();
    moved(&from, &to);
    assert_eq!(seen(&to), seen(&from));
    assert!(json!(block_on(to.state(&slot("s"))).unwrap().context).to_string().len() < 20_000);
}

#[test]
fn the_fields_of_a_session_and_members_of_later_versions_are_moved() {
    let ((from, _), (to, _)) = (windowed(), windowed());
    talk(&from, 1);
    let mut changed = state(&from);
    changed["permission_context"]["mode"] = json!("explore");
    changed["tasks_context"] =
        json!({ "tasks": [{ "id": "t", "subject": "do it", "state": "pending" }] });
    changed["plan_mode_context"] = json!({ "plan_active": true, "current_plan_file": "plan.md" });
    changed["of_the_caller"] = json!({ "n": 1 });
    block_on(from.put_state(&slot("s"), &changed).unwrap()).unwrap();
    block_on(from.rename_session(&slot("s"), "A title".to_owned())).unwrap();
    let mut document = parsed(&exported(&from));
    document["head"]["later"] = json!("kept");
    document["entries"][0][1]["later"] = json!("kept");
    imported(&to, &document.to_string());
    assert_eq!(parsed(&exported(&to)), document);
    assert_eq!(seen(&to), seen(&from));
}

/// A tool that asks a person, if that is its name, and counts its runs.
struct Asking(Rc<ToolSpec>, Rc<Cell<usize>>);

impl Tool for Asking {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own =
            if self.0.name == "asks" { OwnDecision::Ask("why".into()) } else { OwnDecision::Pass };
        Box::pin(ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        self.1.set(self.1.get() + 1);
        Box::pin(ready(Ok(vec![Block::text("ran")])))
    }
}

fn asking(lines: Vec<Line>) -> (Agent, Rc<Cell<usize>>) {
    let runs = Rc::new(Cell::new(0));
    let mut builder = builder_on(&memory(), ScriptedModel::new(lines));
    for name in ["asks", "looks"] {
        let spec = ToolSpec::new(name, "does it", json!({ "type": "object" }));
        builder = builder.tool(Rc::new(Asking(spec.into(), Rc::clone(&runs))));
    }
    (builder.build().unwrap(), runs)
}

fn confirm(agent: &Agent, id: &str) -> Ended {
    let answers = vec![json!({ "toolCallId": id, "approve": true })];
    block_on(agent.confirm(answers, RuntimeContext::new("alice", "s")).unwrap().finish())
}

#[test]
fn an_open_approval_is_moved_and_answered_there() {
    let (from, _) = asking(vec![Line::calls("asks", &json!({}))]);
    let (to, runs) = asking(vec![Line::says("done")]);
    ask(&from, "s", "do it").unwrap();
    let info = moved(&from, &to);
    assert!(info.asking && listed(&to).asking, "{info:?}");
    assert_eq!(seen(&to), seen(&from));
    assert_eq!(confirm(&to, "call-1").unwrap().text, "done");
    assert_eq!((runs.get(), listed(&to).asking), (1, false));
}

#[test]
fn a_call_that_was_allowed_and_not_finished_has_an_unknown_outcome_there() {
    let calls = [("c1", "asks", json!({})), ("c2", "looks", json!({}))];
    let (from, _) = asking(vec![Line::calls_all(&calls)]);
    let (to, runs) = asking(vec![Line::says("done")]);
    ask(&from, "s", "do both").unwrap();
    let info = imported(&to, &exported(&from));
    assert!(info.asking && !info.interrupted);
    assert_eq!(block_on(to.asks(&slot("s"))).unwrap().len(), 1);
    assert_eq!(confirm(&to, "c1").unwrap().text, "done");
    assert_eq!(runs.get(), 1, "the call that waited does not run");
    let history = block_on(to.history(&slot("s"), None, 100)).unwrap();
    let results: Vec<_> = history.iter().flat_map(|it| it.tool_results()).collect();
    let unknown = results.iter().find(|it| it.id == "c2").unwrap();
    assert_eq!((results.len(), unknown.state), (2, ResultState::Interrupted));
    assert!(Block::text_of(&unknown.output).contains("not known"));
}

#[test]
fn no_document_makes_a_tool_run_that_nobody_has_allowed_here() {
    let call =
        json!({ "type": "tool_use", "id": "c1", "name": "looks", "input": {}, "state": "allowed" });
    let reply = json!({ "id": "m2", "role": "assistant", "content": [call], "at": "" });
    let first = json!({ "id": "m1", "role": "user", "content": [{ "type": "text", "text": "go" }], "at": "" });
    let state = json!({ "format": 1, "context": [first, reply] });
    let (agent, runs) = asking(vec![Line::says("done")]);
    let info = imported(&agent, &state.to_string());
    assert_eq!((info.asking, info.interrupted), (false, true));
    assert_eq!(block_on(agent.asks(&slot("s"))).unwrap().len(), 0);
    let mut resumed = agent.resume(RuntimeContext::new("alice", "s")).unwrap();
    assert_eq!(block_on(resumed.finish()).unwrap().text, "done");
    assert_eq!(runs.get(), 0);
}

#[test]
fn an_open_turn_is_exported_as_interrupted_and_its_call_goes_on() {
    let store = memory();
    let lines = vec![Line::says("hi"), Line::Hangs(words("half an ans"))];
    let from = agent_on(&store, ScriptedModel::new(lines));
    ask(&from, "s", "hello").unwrap();
    let mut call = begin(&from, "s", "are you there?");
    while let Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    let records = || block_on(store.list("", Page::default())).unwrap();
    let before = records();
    let document = exported(&from);
    assert_eq!(records(), before, "an export writes nothing");
    let to = agent_on(&memory(), ScriptedModel::new([Line::says("I am")]));
    let info = imported(&to, &document);
    assert_eq!((info.messages, info.interrupted, info.running), (4, true, false));
    assert_eq!(told(&to, "s")[2], "user: are you there?");
    let history = block_on(to.history(&slot("s"), None, 100)).unwrap();
    assert_eq!((history[2].turn(), note_kind(&history[3])), (Some("interrupted"), Some("cut-off")));
    let mut resumed = to.resume(RuntimeContext::new("alice", "s")).unwrap();
    assert_eq!(block_on(resumed.finish()).unwrap().text, "I am");
    assert!(listed(&from).running);
    // The AgentScope document has the same messages.
    let reference = block_on(from.export_session(&slot("s"), Format::AgentScope)).unwrap();
    assert_eq!(parsed(&reference)["context"].as_array().unwrap().len(), 4);
}

#[test]
fn a_document_of_the_first_version_is_imported() {
    let (agent, _) = windowed();
    let info = imported(&agent, FIRST_PLAIN);
    assert_eq!((info.messages, info.title.as_str()), (4, "hello"));
    let plain = ["user: hello", "assistant: answer 0", "user: and now?", "assistant: answer 1"];
    assert_eq!(told(&agent, "s"), plain);
    assert_eq!(state(&agent)["context"], parsed(FIRST_PLAIN)["history"]);
}

#[test]
fn a_compacted_session_of_the_first_version_keeps_its_summary() {
    let (agent, model) = windowed();
    let document = parsed(FIRST);
    let info = imported(&agent, FIRST);
    assert_eq!((info.messages, info.title.as_str()), (14, "A titled session"));
    let history = block_on(agent.history(&slot("s"), None, 100)).unwrap();
    assert_eq!(json!(history), document["history"], "the summary is not a message of the user");
    let shown = state(&agent);
    assert_eq!(shown["summary"], "what was said");
    let ids = |messages: &Value| {
        messages.as_array().unwrap().iter().map(|it| it["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&shown["context"]), ids(&document["state"]["context"]));
    ask(&agent, "s", "go on").unwrap();
    assert_eq!(model.last().len(), 12, "the context, the question, and the reminder of plan mode");
    undo(&agent);
    let shown = state(&agent);
    assert_eq!(shown["summary"], "");
    assert_eq!(
        ids(&shown["context"])[..12],
        ids(&document["history"])[2..],
        "only what the summary replaces"
    );
}

#[test]
fn the_summary_of_an_agentscope_document_is_the_summary_of_the_session() {
    let (agent, model) = windowed();
    let document = json!({
        "session_id": "s", "user_id": "alice", "summary": "they spoke of boats",
        "context": [{ "id": "m1", "role": "USER", "content": [{ "type": "text", "text": "and then?" }], "timestamp": "2026-08-22 10:00:02.000" }],
    });
    imported(&agent, &document.to_string());
    assert_eq!(state(&agent)["summary"], "they spoke of boats");
    assert_eq!(told(&agent, "s"), ["user: and then?"], "it is not a message of the user");
    let export =
        || parsed(&block_on(agent.export_session(&slot("s"), Format::AgentScope)).unwrap());
    assert_eq!(export(), document);
    undo(&agent);
    assert_eq!(state(&agent)["summary"], "they spoke of boats", "what it replaces is not here");
    ask(&agent, "s", "go on").unwrap();
    assert!(model.last()[0].text().contains("they spoke of boats"));
    assert_eq!(model.last().len(), 3);
    assert_eq!(
        (export()["summary"].clone(), export()["context"].as_array().unwrap().len()),
        (document["summary"].clone(), 3)
    );
}

#[test]
fn a_compacted_session_comes_back_from_an_agentscope_document() {
    let ((from, _), (to, model)) = (windowed(), windowed());
    talk(&from, 6);
    compact(&from);
    let document = block_on(from.export_session(&slot("s"), Format::AgentScope)).unwrap();
    imported(&to, &document);
    for part in ["context", "summary", "permission_context"] {
        assert_eq!(state(&to)[part], state(&from)[part], "{part}");
    }
    let back = block_on(to.export_session(&slot("s"), Format::AgentScope)).unwrap();
    assert_eq!(parsed(&back), parsed(&document));
    assert!(told(&to, "s").iter().all(|line| !line.contains("<summary>")));
    talk(&to, 3);
    compact(&to);
    assert!(model.condensed.borrow()[0].messages[0].text().contains("what was said"));
    // A document of the first version.
    let (older, _) = windowed();
    imported(&older, COMPACTED);
    assert_eq!(state(&older)["summary"], parsed(COMPACTED)["summary"]);
    let back = block_on(older.export_session(&slot("s"), Format::AgentScope)).unwrap();
    let slotless = |text: &str| {
        let mut document = parsed(text);
        document.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_id"));
        document
    };
    assert_eq!(slotless(&back), slotless(COMPACTED));
}

/// A document with one change, and the place that the error names.
fn hostile() -> Vec<(&'static str, Value, &'static str)> {
    let zero = "000000000000.zero";
    let span = |from: Value, to: Value| json!([{ "from": from, "to": to }]);
    vec![
        ("/entries/1/1/parent", json!(zero), "entries[1][1].parent"),
        ("/entries/0/1/parent", json!("000000000001.e1"), "entries[0][1].parent"),
        ("/entries/1/1/parent", json!("000000000001.e1"), "entries[1][1].parent"),
        ("/entries/1/1/id", json!("e0"), "entries[1][1].id"),
        ("/entries/1/0", json!("000000000000.e0"), "entries[1][0]"),
        ("/entries/1/0", json!("000000000001.e0"), "entries[1][0]"),
        ("/entries/1/0", json!("000000000001.../head"), "entries[1][0]"),
        ("/entries/1/0", json!("18446744073709551615.e1"), "entries[1][0]"),
        ("/entries/1/1/messages/0/id", json!(""), "entries[1][1].messages"),
        ("/entries/1/1/kind", json!("summary"), "head.card.messages"),
        ("/entries/2/1/messages", json!([]), "entries[2][1].messages"),
        (
            "/entries/2/1/replaced/0/to",
            json!(["000000000002.e2", 1]),
            "entries[2][1].replaced[0].to",
        ),
        (
            "/entries/2/1/replaced",
            json!([{ "summary": "000000000002.e2" }]),
            "entries[2][1].replaced[0].summary",
        ),
        ("/head/leaf", json!(zero), "head.leaf"),
        ("/head/next", json!(2), "head.next"),
        ("/head/next", json!(1e15), "head.next"),
        ("/head/format", json!(2), "head.format"),
        ("/head/card/messages", json!(5), "head.card.messages"),
        ("/head/view", json!([{ "summary": "000000000001.e1" }]), "head.view[0].summary"),
        (
            "/head/view",
            span(json!(["000000000000.e0", 0]), json!(["000000000003.e3", 3])),
            "head.view[0].to",
        ),
        (
            "/head/view",
            span(json!(["000000000003.e3", 0]), json!(["000000000000.e0", 1])),
            "head.view[0].to",
        ),
        (
            "/head/view",
            span(json!(["000000000000.e0", 2]), json!(["000000000000.e0", 1])),
            "head.view[0].to",
        ),
        ("/head/view", span(json!([zero, 0]), json!([zero, 1])), "head.view[0].from"),
        (
            "/head/view",
            json!(vec![json!({ "from": ["000000000000.e0", 0], "to": ["000000000001.e1", 2] }); 4]),
            "head.view[1]",
        ),
        ("/head/anchor/leaf", json!(zero), "head.anchor.leaf"),
        ("/head/anchor/view/1/from/1", json!(9), "head.anchor.view[1].from"),
        ("/head/deleted", json!("now"), "head"),
        (
            "/branches",
            json!([{ "format": 1, "view": [], "next": 4, "card": {}, "leaf": "000000000003.e3" }]),
            "branches[0].leaf",
        ),
        (
            "/branches",
            json!([{ "format": 1, "view": [], "next": 4, "card": {} }]),
            "branches[0].leaf",
        ),
        (
            "/branches",
            json!([{ "format": 1, "view": [], "next": 4, "card": {}, "leaf": "000000000001.e1" }]),
            "branches[0].card.messages",
        ),
        ("/state/permission_context", json!({ "mode": "god" }), "state.permission_context.mode"),
        ("/state", json!(null), "state"),
        ("/entries", json!({}), "entries"),
        ("/entries/0", json!(["000000000000.e0"]), "entries[0]"),
    ]
}

/// Two turns, a summary of the first, and a third turn.
fn small() -> Value {
    let message = |id: &str, role: &str| json!({ "id": id, "role": role, "content": [{ "type": "text", "text": id }], "at": "" });
    let turn = |id: &str, n: u64, parent: Value| {
        let messages = [message(&format!("q{n}"), "user"), message(&format!("a{n}"), "assistant")];
        let entry = json!({ "id": id, "parent": parent, "kind": "turn", "callId": "c", "messages": messages });
        json!([format!("{n:012}.{id}"), entry])
    };
    let replaced = json!([{ "from": ["000000000000.e0", 0], "to": ["000000000000.e0", 2] }]);
    let summary = json!({ "id": "e2", "parent": "000000000001.e1", "kind": "summary", "callId": "", "messages": [message("s", "user")], "replaced": replaced });
    let view = json!([{ "summary": "000000000002.e2" }, { "from": ["000000000001.e1", 0], "to": ["000000000003.e3", 2] }]);
    let anchor = json!({ "leaf": "000000000002.e2", "view": [{ "summary": "000000000002.e2" }, { "from": ["000000000001.e1", 0], "to": ["000000000001.e1", 2] }] });
    json!({
        "lockgate": 2, "title": "t", "history": [], "state": {},
        "head": { "format": 1, "view": view, "leaf": "000000000003.e3", "next": 4, "card": { "messages": 6 }, "anchor": anchor },
        "branches": [],
        "entries": [turn("e0", 0, Value::Null), turn("e1", 1, json!("000000000000.e0")), ["000000000002.e2", summary], turn("e3", 3, json!("000000000002.e2"))],
    })
}

fn set(document: &mut Value, place: &str, value: Value) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        members => members[name] = value,
    }
}

#[test]
fn a_document_whose_parts_do_not_fit_is_refused_with_the_place() {
    let store = memory();
    let agent = agent_on(&store, ScriptedModel::new([Line::says("fine")]));
    for (place, value, named) in hostile() {
        let mut document = small();
        set(&mut document, place, value.clone());
        let error = agent.import_session(&slot("s"), &document.to_string()).err();
        let error = error.unwrap_or_else(|| panic!("{place} = {value} is taken"));
        assert_eq!(error.kind(), ErrorKind::InputInvalid, "{place}");
        assert!(error.message().contains(&format!(" at {named}: expected")), "{place}: {error}");
        assert!(error.hint_text().is_some());
    }
    assert!(block_on(store.list("", Page::default())).unwrap().is_empty(), "nothing is stored");
    imported(&agent, &small().to_string());
    assert_eq!(state(&agent)["context"].as_array().unwrap().len(), 5);
    resend(&agent, None).unwrap();
}

#[test]
fn a_long_document_is_checked_in_a_time_that_grows_with_its_length() {
    let agent = agent_on(&memory(), ScriptedModel::new([]));
    let mut document = small();
    // A long path, and as many branches and pieces that all lead through it.
    let message =
        |n: u64| json!([{ "id": format!("m{n}"), "role": "user", "content": [], "at": "" }]);
    let name = |n: u64| format!("{n:012}.n{n}");
    let entry = |n: u64| {
        let parent = n.checked_sub(1).map(name);
        json!([name(n), { "id": format!("n{n}"), "parent": parent, "kind": "put", "messages": message(n) }])
    };
    let n = 5_000;
    document["entries"] = (0..n).map(entry).collect();
    let view = |n: u64| json!([{ "from": [name(0), 0], "to": [name(n), 1] }]);
    let head = |n: u64| json!({ "format": 1, "view": view(n), "leaf": name(n), "next": 0, "card": { "messages": n + 1 } });
    document["branches"] = (0..n - 1).map(head).collect();
    document["head"] = head(n - 1);
    document["head"]["next"] = json!(n + 1);
    document["entries"][n as usize - 1][1]["parent"] = json!(name(n - 1));
    let error = agent.import_session(&slot("s"), &document.to_string()).err().unwrap();
    assert!(error.message().contains("entries[4999][1].parent"), "{error}");
    document["entries"][n as usize - 1] = entry(n - 1);
    document["branches"][17]["card"]["messages"] = json!(0);
    let error = agent.import_session(&slot("s"), &document.to_string()).err().unwrap();
    assert!(error.message().contains("branches[17].card.messages: expected 18"), "{error}");
}

/// A store that counts what a batch has, and fails from one on.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    batches: RefCell<Vec<(usize, usize)>>,
    fails_from: Cell<Option<usize>>,
}

impl Store for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let bytes = batch.put.iter().map(|(_, value)| value.len()).sum();
        self.batches.borrow_mut().push((batch.put.len(), bytes));
        let n = self.batches.borrow().len();
        if self.fails_from.get().is_some_and(|first| n > first) {
            return Box::pin(ready(Err(Error::new(ErrorKind::StoreQuota, "the disk is full"))));
        }
        self.inner.commit(batch)
    }
}

#[test]
fn a_large_session_is_imported_in_batches_and_seen_once_it_is_whole() {
    let (from, _) = windowed();
    for n in 0..150 {
        block_on(from.append(&slot("s"), said(&format!("{n} {}", "x".repeat(20_000))))).unwrap();
    }
    ask(&from, "s", "go").unwrap();
    for _ in 0..3 {
        resend(&from, None).unwrap();
    }
    let document = exported(&from);
    let store = Rc::new(Counting::default());
    let to = agent_on(&(Rc::clone(&store) as _), ScriptedModel::new([Line::says("fine")]));
    for crash_at in 0..4 {
        store.batches.borrow_mut().clear();
        store.fails_from.set(Some(crash_at));
        let failed = block_on(to.import_session(&slot("s"), &document).unwrap()).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::StoreQuota);
        assert!(block_on(to.session(&slot("s"))).unwrap().is_none(), "nothing is seen of a part");
        assert!(block_on(to.list_sessions(Some("alice"), Page::default())).unwrap().is_empty());
    }
    store.fails_from.set(None);
    store.batches.borrow_mut().clear();
    assert_eq!(imported(&to, &document).branches, 3);
    assert_eq!(parsed(&exported(&to)), parsed(&document));
    let batches = store.batches.borrow();
    assert!(batches.len() > 3, "{batches:?}");
    assert!(batches.iter().all(|(n, bytes)| *n <= 100 && *bytes <= 1_010_000), "{batches:?}");
}

#[test]
fn a_session_that_begins_after_a_broken_import_has_none_of_its_branches() {
    let (from, _) = windowed();
    talk(&from, 1);
    for n in 0..120 {
        resend(&from, Some(&format!("again {n} {}", "x".repeat(9_000)))).unwrap();
    }
    let store = Rc::new(Counting::default());
    let to = agent_on(&(Rc::clone(&store) as _), ScriptedModel::new([Line::says("fine")]));
    store.fails_from.set(Some(2));
    block_on(to.import_session(&slot("s"), &exported(&from)).unwrap()).unwrap_err();
    store.fails_from.set(None);
    ask(&to, "s", "hello").unwrap();
    assert_eq!(block_on(to.branches(&slot("s"))).unwrap().len(), 1);
}

#[test]
fn a_document_has_what_people_look_for() {
    let (agent, _) = windowed();
    talk(&agent, 6);
    compact(&agent);
    let document = parsed(&exported(&agent));
    assert_eq!(document["lockgate"], 2);
    assert_eq!(document["title"], listed(&agent).title);
    let history: Vec<Rc<Message>> = block_on(agent.history(&slot("s"), None, 100)).unwrap();
    assert_eq!(document["history"], json!(history));
    let state = &document["state"];
    assert_eq!((&state["session_id"], &state["user_id"]), (&json!("s"), &json!("alice")));
    assert_eq!(state["summary"], "what was said");
    assert!(state.get("context").is_none() && state.get("revision").is_none());
}
