//! Unreadable records: they are named, kept and skipped where possible, and never lead to a fresh session.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::Agent;
use lockgate::error::{Error, ErrorKind};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Page, Store};
use serde_json::{Value, json};

fn talked(store: &Rc<dyn Store>) -> Agent {
    let lines = (1..=9).map(|n| Line::says(&format!("answer {n}")));
    let agent = agent_on(store, ScriptedModel::new(lines));
    for text in ["one", "two", "three"] {
        ask(&agent, "s1", text).unwrap();
    }
    agent
}

fn records(store: &Rc<dyn Store>) -> Vec<(String, Vec<u8>)> {
    let listed = block_on(store.list("", Page::default())).unwrap();
    listed.into_iter().map(|(key, record)| (key, record.value)).collect()
}

fn key_with(store: &Rc<dyn Store>, part: &str) -> String {
    let mut keys = records(store).into_iter().map(|(key, _)| key);
    keys.find(|key| key.contains(part)).unwrap_or_else(|| panic!("no key with {part}"))
}

fn value(store: &Rc<dyn Store>, key: &str) -> Value {
    let found = records(store).into_iter().find(|(other, _)| other == key).unwrap();
    serde_json::from_slice(&found.1).unwrap()
}

fn write(store: &Rc<dyn Store>, key: &str, bytes: &[u8]) {
    let put = vec![(key.to_owned(), bytes.to_vec())];
    block_on(store.commit(&Batch { revision: "x.9.x".into(), put, ..Batch::default() })).unwrap();
}

fn remove(store: &Rc<dyn Store>, key: &str) {
    let remove = vec![key.to_owned()];
    block_on(store.commit(&Batch { revision: "x.9.x".into(), remove, ..Batch::default() }))
        .unwrap();
}

fn listed(agent: &Agent) -> Vec<String> {
    let infos = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
    infos.into_iter().map(|info| format!("{}: {}", info.session_id, info.title)).collect()
}

fn quarantined(store: &Rc<dyn Store>) -> Vec<Vec<u8>> {
    let kept = records(store).into_iter().filter(|(key, _)| key.contains("/quarantine/"));
    kept.map(|(_, bytes)| bytes).collect()
}

fn refused(agent: &Agent) -> Error {
    let before = told_of(agent);
    let error = ask(agent, "s1", "again").unwrap_err().error;
    assert_eq!(before, told_of(agent), "something was changed");
    error
}

fn told_of(agent: &Agent) -> Option<usize> {
    block_on(agent.history(&slot("s1"), None, 100)).ok().map(|messages| messages.len())
}

/// A head of a newer version that still has all fields we know.
fn newer(store: &Rc<dyn Store>) -> String {
    let key = key_with(store, "/head");
    let mut head = value(store, &key);
    head["format"] = 2.into();
    head["mood"] = json!({ "of": "the future" });
    write(store, &key, head.to_string().as_bytes());
    key
}

// S-07
#[test]
fn a_session_of_a_newer_format_can_be_read_and_not_changed() {
    let store = memory();
    let agent = talked(&store);
    newer(&store);
    let before = records(&store);
    let state = block_on(agent.state(&slot("s1"))).unwrap();
    assert_eq!((state.format, state.context.len()), (2, 6));
    assert_eq!(told(&agent, "s1").len(), 6);
    assert_eq!(listed(&agent), ["s1: one"]);
    let changes = [
        ask(&agent, "s1", "again").unwrap_err().error,
        block_on(agent.clear_context(&slot("s1"))).unwrap_err(),
        block_on(agent.rename_session(&slot("s1"), "new".into())).unwrap_err(),
        block_on(agent.append(&slot("s1"), said("more"))).unwrap_err(),
        block_on(agent.repair_session(&slot("s1"))).unwrap_err(),
        block_on(agent.delete_session(&slot("s1"))).unwrap_err(),
    ];
    for error in changes {
        assert_eq!(error.kind(), ErrorKind::StateVersion, "{error:?}");
        assert!(error.hint_text().unwrap().contains("update"));
    }
    assert_eq!(records(&store), before);
}

// S-07
#[test]
fn a_turn_that_finds_a_newer_format_leaves_it_unchanged() {
    let store = memory();
    let agent = talked(&store);
    let mut call = begin(&agent, "s1", "again");
    while !matches!(block_on(call.next()), Some(event) if format!("{event:?}").contains("Accepted"))
    {
    }
    let key = newer(&store);
    let head = value(&store, &key);
    let error = block_on(call.finish()).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::StateVersion);
    assert_eq!(value(&store, &key), head);
}

// S-07
#[test]
fn unknown_fields_of_a_head_survive_a_save() {
    let store = memory();
    let agent = talked(&store);
    let key = key_with(&store, "/head");
    let mut head = value(&store, &key);
    head["mood"] = 1.into();
    head["card"]["colour"] = 2.into();
    head["facts"] = json!({ "weather": 3, "tool_context": { "weight": 4 } });
    write(&store, &key, head.to_string().as_bytes());
    block_on(agent.rename_session(&slot("s1"), "renamed".into())).unwrap();
    ask(&agent, "s1", "four").unwrap();
    let head = value(&store, &key);
    let kept = [
        &head["mood"],
        &head["card"]["colour"],
        &head["facts"]["weather"],
        &head["facts"]["tool_context"]["weight"],
    ];
    assert_eq!(kept, [1, 2, 3, 4].map(Value::from).each_ref());
    assert_eq!(head["card"]["title"], "renamed");
}

// S-06
#[test]
fn an_unreadable_head_is_rebuilt_from_the_log() {
    let store = memory();
    let agent = talked(&store);
    let key = key_with(&store, "/head");
    for bytes in [&b"{\"format\":1,"[..], b"", b"{\"format\":1,\"epoch\":\"x\"}"] {
        write(&store, &key, bytes);
        let error = refused(&agent);
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
        assert!(error.message().contains("s1") && error.hint_text().unwrap().contains("repair"));
        let info = block_on(agent.repair_session(&slot("s1"))).unwrap().unwrap();
        assert_eq!((info.title.as_str(), info.messages), ("one", 6));
        assert_eq!(told(&agent, "s1").len(), 6);
        assert!(quarantined(&store).iter().any(|kept| kept == bytes));
        assert_eq!(listed(&agent), ["s1: one"]);
    }
    ask(&agent, "s1", "four").unwrap();
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: answer 4");
}

//
#[test]
fn a_lost_head_does_not_make_a_fresh_session() {
    let store = memory();
    let agent = talked(&store);
    remove(&store, &key_with(&store, "/head"));
    let error = refused(&agent);
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    assert!(block_on(agent.state(&slot("s1"))).is_err());
    assert!(block_on(agent.session(&slot("s1"))).is_err());
    block_on(agent.repair_session(&slot("s1"))).unwrap();
    assert_eq!(told(&agent, "s1").len(), 6);
    assert_eq!(listed(&agent), ["s1: one"]);
}

// S-05, S-06
#[test]
fn an_unreadable_or_lost_entry_is_named_and_skipped_by_a_repair() {
    for (place, is_lost) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let store = memory();
        talked(&store);
        let key = key_with(&store, &format!("/log/00000000000{place}"));
        if is_lost {
            remove(&store, &key)
        } else {
            write(&store, &key, b"{\"id\":")
        }
        let again = agent_on(&store, ScriptedModel::new([Line::says("well")]));
        let error = ask(&again, "s1", "again").unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error:?}");
        let named = error.message().contains(&format!("00000000000{place}"));
        assert!(is_lost || named, "{error:?}");
        block_on(again.repair_session(&slot("s1"))).unwrap();
        let history = block_on(again.history(&slot("s1"), None, 100)).unwrap();
        assert_eq!(note_kind(&history[place * 2]), Some("left-out"));
        let told = told(&again, "s1");
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[place * 2].contains("cannot be read any more"));
        assert_eq!(quarantined(&store).len(), usize::from(!is_lost));
        ask(&again, "s1", "and now?").unwrap();
        let context = block_on(again.state(&slot("s1"))).unwrap().context;
        assert_eq!(context.len(), 7);
    }
}

#[test]
fn an_unreadable_input_does_not_block_a_session_after_a_repair() {
    let store = memory();
    let agent = talked(&store);
    let head = key_with(&store, "/head");
    write(&store, &head.replace("/head", "/input/t.x"), b"nonsense");
    assert_eq!(refused(&agent).kind(), ErrorKind::StoreCorrupt);
    block_on(agent.repair_session(&slot("s1"))).unwrap();
    ask(&agent, "s1", "four").unwrap();
    assert_eq!(quarantined(&store), [b"nonsense".to_vec()]);
}

#[test]
fn a_repair_leaves_a_readable_session_unchanged() {
    let store = memory();
    let agent = talked(&store);
    let before = records(&store);
    block_on(agent.repair_session(&slot("s1"))).unwrap();
    assert_eq!(records(&store), before);
    let error = block_on(agent.repair_session(&slot("s2"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchSession);
}

// S-13
#[test]
fn an_unreadable_list_line_is_rebuilt_from_the_head() {
    let store = memory();
    let agent = talked(&store);
    ask(&agent, "s2", "other").unwrap();
    let line = key_with(&store, ".t.s1");
    write(&store, &line, b"{");
    assert_eq!(listed(&agent), ["s1: one", "s2: other"]);
    ask(&agent, "s1", "four").unwrap();
    assert!(serde_json::from_slice::<Value>(&records(&store)[0].1).is_ok());
    // With neither line nor head, the other sessions are still listed, and reading this one fails.
    write(&store, &key_with(&store, ".t.s1"), b"{");
    write(&store, &key_with(&store, "slot/t.s1/head"), b"{");
    assert_eq!(listed(&agent), ["s2: other"]);
    assert_eq!(refused(&agent).kind(), ErrorKind::StoreCorrupt);
}

// S-13
#[test]
fn a_lost_list_line_is_rebuilt_by_the_next_change() {
    let store = memory();
    let agent = talked(&store);
    remove(&store, &key_with(&store, ".t.s1"));
    assert!(listed(&agent).is_empty());
    ask(&agent, "s1", "four").unwrap();
    assert_eq!(listed(&agent), ["s1: one"]);
}

#[test]
fn an_unreadable_session_can_be_deleted_with_its_line_in_the_list() {
    let store = memory();
    let agent = talked(&store);
    write(&store, &key_with(&store, "/head"), b"{");
    block_on(agent.delete_session(&slot("s1"))).unwrap();
    assert!(listed(&agent).is_empty());
    assert_eq!(records(&store).len(), 1);
    ask(&agent, "s1", "anew").unwrap();
    assert_eq!(told(&agent, "s1").len(), 2);
}

// S-06
#[test]
fn a_session_with_any_flipped_bit_is_read_unchanged_or_fails() {
    let store = memory();
    let agent = talked(&store);
    let before = told(&agent, "s1");
    let head = key_with(&store, "/head");
    let bytes = records(&store).into_iter().find(|(key, _)| *key == head).unwrap().1;
    for place in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[place / 8] ^= 1 << (place % 8);
        write(&store, &head, &flipped);
        let again = agent_on(&store, ScriptedModel::new([]));
        match block_on(again.history(&slot("s1"), None, 100)) {
            // A head with a flipped number or title is still readable. Messages come from the log, complete or not at all.
            Ok(messages) => assert!(messages.len() <= before.len()),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::StoreCorrupt | ErrorKind::StateVersion))
            }
        }
        assert_eq!(records(&store).into_iter().find(|(key, _)| *key == head).unwrap().1, flipped);
    }
}
