//! Open turns in exports, forks and searches, and in tabs that only see the lock of the call.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use lockgate::engine::{Agent, Call, CallRequest, Format, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::Message;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Held, Lock, Page, Store};
use lockgate::store::search::{Query, SearchHit};
use serde_json::{Value, json};

fn hangs() -> Line {
    Line::Hangs(words("half an ans"))
}

/// A call that is accepted and has half an answer.
fn talking(agent: &Agent, text: &str) -> Call {
    started(begin(agent, "s1", text))
}

fn started(mut call: Call) -> Call {
    while let Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    call
}

fn agent_that(store: &Rc<dyn Store>, lines: Vec<Line>) -> Agent {
    agent_on(store, ScriptedModel::new(lines))
}

/// The messages of a session, with the state of their turns.
fn shown(agent: &Agent, session: &str) -> Vec<String> {
    let history = block_on(agent.history(&slot(session), None, 100)).unwrap();
    let turn = |it: &Message| it.turn().map(|turn| format!(" [{turn}]"));
    history.iter().map(|it| it.text() + &turn(it).unwrap_or_default()).collect()
}

fn export(agent: &Agent, format: Format) -> String {
    block_on(agent.export_session(&slot("s1"), format)).unwrap()
}

fn import(document: &str) -> Agent {
    let agent = agent_that(&memory(), Vec::new());
    block_on(agent.import_session(&slot("s1"), document).unwrap()).unwrap();
    agent
}

/// The ids of the messages of a history.
fn ids(agent: &Agent) -> Vec<String> {
    let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    history.iter().map(|it| it.id.clone()).collect()
}

fn fork(agent: &Agent, to: &str, up_to: Option<&String>) -> Result<()> {
    block_on(agent.fork(&slot("s1"), &slot(to), up_to.cloned())).map(|_| ())
}

fn search(agent: &Agent, text: &str, session: Option<&str>) -> Vec<SearchHit> {
    let query = Query { text, user: Some("alice"), session, limit: 10 };
    block_on(agent.search(query)).unwrap()
}

#[test]
fn an_export_has_the_open_turn_as_interrupted_in_every_format() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("hi"), hangs()]);
    ask(&agent, "s1", "hello").unwrap();
    let call = talking(&agent, "are you there?");
    for format in [Format::AgentScope, Format::Lockgate] {
        let running = export(&agent, format);
        assert!(running.contains("are you there?"), "{format:?}");
        let imported = shown(&import(&running), "s1");
        assert_eq!(imported[..2], ["hello", "hi"]);
        assert!(imported[2].starts_with("are you there?"), "{format:?}: {imported:?}");
        // The note says that the answer was cut off.
        assert_eq!(imported.len(), 4);
    }
    drop(call);
    let crashed = export(&agent_that(&store, Vec::new()), Format::AgentScope);
    assert_eq!(crashed.matches("are you there?").count(), 1);
    assert_eq!(shown(&agent, "s1").len(), 3, "an export writes nothing");
}

#[test]
fn an_export_during_a_resend_has_the_stored_answer_or_the_path_of_the_resend() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("a"), hangs()]);
    ask(&agent, "s1", "one").unwrap();
    let messages = said("another one");
    let resend = CallRequest { messages, resends: true, ..request("s1", "") };
    let _call = started(agent.begin(resend).unwrap());
    let context: Value =
        lockgate::json::parse(export(&agent, Format::AgentScope).as_bytes(), "").unwrap();
    assert_eq!(context["context"].as_array().unwrap().len(), 2);
    assert!(export(&agent, Format::Lockgate).contains("another one"));
}

#[test]
fn a_fork_ends_at_an_open_question_or_has_the_interrupted_turn() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("hi"), hangs()]);
    ask(&agent, "s1", "hello").unwrap();
    // The call runs in another process, so the fork does not wait for it.
    let _call = talking(&agent, "are you there?");
    let other = agent_that(&store, vec![Line::says("I am"), Line::says("I am, too")]);
    let open = ids(&other).pop().unwrap();
    fork(&other, "at", Some(&open)).unwrap();
    assert_eq!(shown(&other, "at"), ["hello", "hi", "are you there? [interrupted]"]);
    fork(&other, "before", ids(&other).get(1)).unwrap();
    assert_eq!(shown(&other, "before"), ["hello", "hi"]);
    fork(&other, "whole", None).unwrap();
    assert_eq!(shown(&other, "whole")[..3], ["hello", "hi", "are you there? [interrupted]"]);
    let info = block_on(other.session(&slot("whole"))).unwrap().unwrap();
    assert_eq!((info.messages, info.interrupted, info.running), (4, true, false));
    for session in ["at", "whole"] {
        let mut resumed = other.resume(RuntimeContext::new("alice", session)).unwrap();
        assert!(block_on(resumed.finish()).unwrap().text.starts_with("I am"));
        assert!(!shown(&other, session)[2].contains('['));
    }
    assert_eq!(shown(&other, "s1").len(), 3, "the source is as it was");
}

#[test]
fn a_fork_does_not_have_a_resend_that_runs() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("a"), hangs()]);
    ask(&agent, "s1", "one").unwrap();
    let resend = CallRequest { messages: said("two"), resends: true, ..request("s1", "") };
    let _call = started(agent.begin(resend).unwrap());
    let other = agent_that(&store, Vec::new());
    fork(&other, "f", None).unwrap();
    assert_eq!(shown(&other, "f"), ["one", "a"]);
}

#[test]
fn search_finds_an_open_question_at_once_and_once() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("hi"), hangs()]);
    ask(&agent, "s1", "hello").unwrap();
    let call = talking(&agent, "where is the albatross?");
    let id = ids(&agent).pop().unwrap();
    for session in [None, Some("s1")] {
        let hits = search(&agent, "albatross", session);
        assert_eq!(hits.iter().map(|hit| &hit.message_id).collect::<Vec<_>>(), [&id]);
        assert!(hits[0].excerpt.contains("albatross"));
    }
    let segments = || {
        block_on(store.list("", Page::default()))
            .unwrap()
            .iter()
            .filter(|(key, _)| key.contains("/search/"))
            .count()
    };
    block_on(agent.index(&slot("s1"))).unwrap();
    assert_eq!(segments(), 0);
    drop(call);
    let alive = agent_that(&store, vec![Line::says("here")]);
    assert_eq!(search(&alive, "albatross", None).len(), 1);
    ask(&alive, "s1", "and the gull?").unwrap();
    assert_eq!(search(&alive, "albatross", None).len(), 1);
    assert_eq!(search(&alive, "gull", None).len(), 1);
}

#[test]
fn an_unreadable_input_of_one_session_hides_no_hit_of_another() {
    let store = memory();
    let agent = agent_that(&store, vec![hangs(), hangs()]);
    let _calls = (talking(&agent, "albatross"), started(begin(&agent, "s2", "albatross too")));
    let records = block_on(store.list("", Page::default())).unwrap();
    let (key, _) = records.iter().find(|(key, _)| key.contains("/t.s1/input/")).unwrap().clone();
    let put = vec![(key, b"{".to_vec())];
    let batch = lockgate::port::Batch { revision: "bad".to_owned(), put, ..Default::default() };
    block_on(store.commit(&batch)).unwrap();
    assert_eq!(search(&agent, "albatross", None).len(), 1);
}

#[test]
fn the_state_of_a_turn_is_ignored_in_what_is_put_appended_and_imported() {
    let agent = agent_that(&memory(), vec![Line::says("hi")]);
    ask(&agent, "s1", "hello").unwrap();
    let mut state = lockgate::json::to_value(&block_on(agent.state(&slot("s1"))).unwrap());
    for (name, value) in [("turn", json!("failed")), ("turnError", json!({ "code": "X" }))] {
        state["context"][0][name] = value;
    }
    block_on(agent.put_state(&slot("s1"), &state).unwrap()).unwrap();
    assert!(shown(&agent, "s1").iter().all(|it| !it.contains('[')));
    let given = json!({ "role": "user", "content": "by hand", "turn": "open" });
    let message = Message::from_caller(&given).unwrap();
    block_on(agent.append(&slot("s1"), vec![message])).unwrap();
    assert_eq!(shown(&agent, "s1").last().unwrap(), "by hand");
    let mut document: Value =
        lockgate::json::parse(export(&agent, Format::AgentScope).as_bytes(), "").unwrap();
    document["context"][0]["turn"] = json!("interrupted");
    assert!(shown(&import(&document.to_string()), "s1").iter().all(|it| !it.contains('[')));
}

/// The locks as a tab sees them: those of other tabs are held, or not.
struct OtherTab(Cell<bool>);

struct OwnLock;

impl Held for OwnLock {
    fn lost(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }
}

impl Lock for OtherTab {
    fn acquire<'a>(&'a self, _: &'a str) -> Local<'a, Result<Box<dyn Held>>> {
        Box::pin(ready(Ok(Box::new(OwnLock) as Box<dyn Held>)))
    }

    fn is_held<'a>(&'a self, name: &'a str) -> Local<'a, Result<bool>> {
        Box::pin(ready(Ok(self.0.get() && name.ends_with("/slot/t.s1/"))))
    }
}

#[test]
fn a_call_of_another_tab_is_open_while_its_lock_is_held() {
    let store = memory();
    let _call = talking(&agent_that(&store, vec![hangs()]), "are you there?");
    let lock = Rc::new(OtherTab(Cell::new(true)));
    let builder = builder_on(&store, ScriptedModel::new(Vec::new())).lock(Rc::clone(&lock) as _);
    let tab = builder.build().unwrap();
    let facts = || {
        let listed = block_on(tab.list_sessions(Some("alice"), Page::default())).unwrap().remove(0);
        let info = block_on(tab.session(&slot("s1"))).unwrap().unwrap();
        assert_eq!((listed.running, listed.interrupted), (info.running, info.interrupted));
        (info.running, info.interrupted)
    };
    assert_eq!(shown(&tab, "s1"), ["are you there? [open]"]);
    assert_eq!(facts(), (true, false));
    lock.0.set(false);
    assert_eq!(shown(&tab, "s1"), ["are you there? [interrupted]"]);
    assert_eq!(facts(), (false, true));
}

#[test]
fn a_question_that_failed_is_exported_once_and_keeps_its_place() {
    let agent = agent_that(&memory(), vec![Line::fails(ErrorKind::ModelAuth), Line::says("hi")]);
    ask(&agent, "s1", "first").unwrap_err();
    ask(&agent, "s1", "second").unwrap();
    let imported = shown(&import(&export(&agent, Format::AgentScope)), "s1");
    assert_eq!(imported, ["first", "second", "hi"]);
}

#[test]
fn a_session_runs_while_a_call_does_and_not_while_a_change_waits() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("hi"), hangs()]);
    ask(&agent, "s1", "hello").unwrap();
    let lock = Rc::new(OtherTab(Cell::new(true)));
    let builder = builder_on(&store, ScriptedModel::new(Vec::new())).lock(lock);
    let running = |agent: &Agent| {
        let info = block_on(agent.session(&slot("s1"))).unwrap().unwrap();
        let listed = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
        assert_eq!(listed[0].running, info.running);
        info.running
    };
    // A change of another tab has the lock, and a change of this agent has a place in the queue.
    assert!(!running(&builder.build().unwrap()));
    let change = agent.append(&slot("s1"), Vec::new());
    assert!(!running(&agent));
    drop(change);
    let _call = talking(&agent, "again");
    assert!(running(&agent));
}
