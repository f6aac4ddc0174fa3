//! Sessions that this version has written, read and continued by a reader of version 0.1.0: it drops records and members that it
//! does not know, and a writer of 0.1.0 keeps the members, with outdated values.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Options, RuntimeContext};
use lockgate::error::ErrorKind;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Batch, Page, Store};
use serde_json::{Map, Value, json};

/// The members of a head that 0.1.0 knows, and of the parts of a head that keep members which they do not know.
const HEAD: &[&str] = &[
    "format",
    "epoch",
    "session_id",
    "user_id",
    "facts",
    "view",
    "edits",
    "leaf",
    "next",
    "card",
    "index",
    "anchor",
    "open",
];
const PARTS: &[(&str, &[&str])] = &[
    ("card", &["title", "line", "messages", "created", "updated", "branches", "asking"]),
    ("anchor", &["leaf", "view", "asked", "facts", "edits"]),
    ("open", &["callId", "node", "until", "waiting", "stop"]),
];
const ENTRY: &[&str] =
    &["id", "parent", "kind", "callId", "messages", "changes", "outcome", "replaced", "edits"];
const INPUT: &[&str] = &["callId", "named", "messages", "answers", "asked", "resends"];
const LINE: &[&str] = &[
    "sessionId",
    "userId",
    "title",
    "summary",
    "messages",
    "updatedAt",
    "createdAt",
    "asking",
    "branches",
];
const MESSAGE: &[&str] = &["id", "role", "content", "name", "at", "usage", "metadata"];
/// A reader of 0.1.0 refuses an entry of another kind, and an edit of another kind.
const ENTRY_KINDS: &[&str] = &["turn", "step", "summary", "put", "recovered"];
const EDIT_KINDS: &[&str] = &["evicted", "truncated", "faded"];

fn only(value: &Value, known: &[&str]) -> Value {
    let members = value.as_object().unwrap().iter();
    let kept = members.filter(|(name, _)| known.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
}

fn check_edits(edits: &Value) {
    for edit in edits.as_object().into_iter().flat_map(Map::values) {
        let kinds = edit.as_object().unwrap().keys();
        kinds.for_each(|kind| assert!(EDIT_KINDS.contains(&kind.as_str()), "the edit {kind}"));
    }
}

fn head_of_0_1_0(value: &Value) -> Value {
    let mut head = only(value, HEAD);
    for (part, known) in PARTS {
        if let Some(value) = head.get_mut(*part) {
            *value = only(value, known);
        }
    }
    check_edits(&head["edits"]);
    head
}

fn entry_of_0_1_0(value: &Value) -> Value {
    let mut entry = only(value, ENTRY);
    let kind = entry["kind"].as_str().unwrap();
    assert!(ENTRY_KINDS.contains(&kind), "the kind {kind}");
    check_edits(&entry["edits"]);
    for message in entry["messages"].as_array_mut().unwrap() {
        *message = only(message, MESSAGE);
    }
    entry
}

/// A record as a reader of 0.1.0 sees it; `None` if it knows no such record.
fn of_0_1_0(key: &str, value: &Value) -> Option<Value> {
    let kind = lockgate::store::keys::kind(key);
    Some(match kind.as_str() {
        "slot/head" | "slot/branch" => head_of_0_1_0(value),
        "slot/log" => entry_of_0_1_0(value),
        "slot/input" => only(value, INPUT),
        "index" => only(value, LINE),
        "slot/call" => only(value, &["entry", "asked"]),
        "file" | "slot/file" | "search" | "task" => value.clone(),
        "slot/memory" => only(value, &["next"]),
        _ => return None,
    })
}

fn records(store: &Rc<dyn Store>) -> Vec<(String, String, Value)> {
    let records = block_on(store.list("", Page::default())).unwrap().into_iter();
    let parsed = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or(Value::Null);
    records.map(|(key, it)| (key, it.revision.clone(), parsed(&it.value))).collect()
}

fn store_of(records: Vec<(String, String, Value)>) -> Rc<dyn Store> {
    let store = memory();
    for (key, revision, value) in records {
        let put = vec![(key, serde_json::to_vec(&value).unwrap())];
        block_on(store.commit(&Batch { revision, put, ..Batch::default() })).unwrap();
    }
    store
}

/// The store as a reader of 0.1.0 sees it.
fn older(store: &Rc<dyn Store>) -> Rc<dyn Store> {
    let known = records(store).into_iter().filter_map(|(key, revision, value)| {
        let value = of_0_1_0(&key, &value)?;
        Some((key, revision, value))
    });
    store_of(known.collect())
}

/// The store after a writer of 0.1.0 has turned `before` into `after`: records that it does not know are unchanged, and heads
/// keep members that it does not know.
fn written_by_older(before: &Rc<dyn Store>, after: &Rc<dyn Store>) -> Rc<dyn Store> {
    let then = records(before);
    let mut now = records(after);
    for (key, _, value) in &mut now {
        let Some((_, _, old)) = then.iter().find(|(name, ..)| name == key) else { continue };
        if lockgate::store::keys::kind(key) == "slot/head" {
            carry(old, value, HEAD);
            for (part, known) in PARTS {
                if let (Some(old), Some(value)) = (old.get(*part), value.get_mut(*part)) {
                    carry(old, value, known);
                }
            }
        }
    }
    let unknown = then.into_iter().filter(|(key, _, value)| of_0_1_0(key, value).is_none());
    now.extend(unknown);
    store_of(now)
}

fn carry(old: &Value, value: &mut Value, known: &[&str]) {
    let members = old.as_object().unwrap().iter();
    for (name, member) in members.filter(|(name, _)| !known.contains(&name.as_str())) {
        value[name.as_str()] = member.clone();
    }
}

fn options() -> Options {
    let mut options = Options::new("helper");
    options.compaction.keep_messages = 2;
    options
}

fn agent_that(store: &Rc<dyn Store>, lines: Vec<Line>) -> Agent {
    let host = HostHandle(TestHost::new());
    let builder = lockgate::engine::Builder::new(options()).model(ScriptedModel::new(lines));
    builder.store(Rc::clone(store)).host(Rc::new(host)).build().unwrap()
}

fn says(n: usize) -> Vec<Line> {
    (0..n).map(|n| Line::says(&format!("answer {n}"))).collect()
}

fn resend(agent: &Agent, session: &str, from: Option<String>) {
    let again = CallRequest { messages: Vec::new(), resends: true, from, ..request(session, "") };
    block_on(agent.begin(again).unwrap().finish()).unwrap();
}

/// Sessions with everything that this version stores and 0.1.0 did not.
fn sessions() -> Rc<dyn Store> {
    let store = memory();
    let agent = agent_that(&store, says(3));
    // A summary must be shorter than what it replaces.
    let long = "a question of many words ".repeat(20);
    (0..3).for_each(|_| drop(ask(&agent, "compacted", &long).unwrap()));
    let agent = agent_that(&store, vec![Line::says("the summary"), Line::says("after it")]);
    block_on(agent.compact(&slot("compacted"))).unwrap();
    ask(&agent, "compacted", "four").unwrap();

    let agent = agent_that(&store, says(4));
    ["one", "two"].iter().for_each(|text| drop(ask(&agent, "resent", text).unwrap()));
    resend(&agent, "resent", None);
    let first = block_on(agent.history(&slot("resent"), None, 100)).unwrap()[0].id.clone();
    resend(&agent, "resent", Some(first));

    let lines = vec![Line::says("fine"), Line::fails(ErrorKind::ModelBadRequest)];
    let agent = agent_that(&store, lines);
    ask(&agent, "rejected", "good").unwrap();
    ask(&agent, "rejected", "bad").unwrap_err();

    let half = Line::Hangs(words("half an ans"));
    let agent = agent_that(&store, vec![Line::says("fine"), half]);
    ask(&agent, "cut", "one").unwrap();
    let mut call = begin(&agent, "cut", "two");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    drop(call);
    store
}

const SESSIONS: [&str; 4] = ["compacted", "resent", "rejected", "cut"];

fn context(agent: &Agent, session: &str) -> Vec<Value> {
    let state = block_on(agent.state(&slot(session))).unwrap();
    state.context.iter().map(|message| only(&json!(message), MESSAGE)).collect()
}

#[test]
fn a_reader_of_the_first_version_sees_the_same_conversations() {
    let store = sessions();
    let (agent, then) = (agent_that(&store, says(9)), agent_that(&older(&store), says(9)));
    for session in SESSIONS {
        assert_eq!(told(&then, session), told(&agent, session), "{session}");
        assert_eq!(context(&then, session), context(&agent, session), "{session}");
        let branches = |agent: &Agent| block_on(agent.branches(&slot(session))).unwrap().len();
        assert_eq!(branches(&then), branches(&agent), "{session}");
        let before = told(&then, session).len();
        ask(&then, session, "go on").unwrap();
        assert!(told(&then, session).len() >= before + 2, "{session}");
        resend(&then, session, None);
    }
}

#[test]
fn a_session_that_a_writer_of_the_first_version_has_continued_is_read_and_continued_here() {
    let store = sessions();
    let by_older = older(&store);
    let then = agent_that(&by_older, says(SESSIONS.len()));
    SESSIONS.iter().for_each(|session| drop(ask(&then, session, "from the older one").unwrap()));
    let now = agent_that(&written_by_older(&store, &by_older), says(9));
    for session in SESSIONS {
        assert_eq!(told(&now, session), told(&then, session), "{session}");
        assert_eq!(context(&now, session), context(&then, session), "{session}");
        let info = block_on(now.session(&slot(session))).unwrap().unwrap();
        assert!(!info.interrupted && !info.running && !info.asking, "{session}");
        let n = told(&now, session).len() as u64;
        assert_eq!(info.messages, n, "{session}");
        resend(&now, session, None);
        ask(&now, session, "and from this one").unwrap();
        assert_eq!(told(&now, session).len() as u64, n + 2, "{session}");
        let mut resume = now.resume(RuntimeContext::new("alice", session)).unwrap();
        block_on(resume.finish()).unwrap_err();
    }
}
