//! All records of a user: registered by kind, and deleted even while calls run.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest};
use lockgate::error::ErrorKind;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Page, Store};
use lockgate::store::keys;

fn keys(store: &Rc<dyn Store>) -> Vec<String> {
    let records = block_on(store.list("", Page::default())).unwrap();
    records.into_iter().map(|(key, _)| key).collect()
}

/// A session with every kind of record.
fn lived_in(store: &Rc<dyn Store>) -> Agent {
    let lines = [Line::says("one"), Line::says("two"), Line::Hangs(words("three"))];
    let agent = agent_on(store, ScriptedModel::new(lines));
    let named = CallRequest { call_id: Some("c".to_owned()), ..request("s1", "first") };
    block_on(agent.begin(named).unwrap().finish()).unwrap();
    block_on(agent.append(&slot("s1"), said("by hand"))).unwrap();
    // Long enough for a segment of the search index.
    block_on(agent.append(&slot("s1"), said(&"word ".repeat(20_000)))).unwrap();
    block_on(agent.afterwards());
    block_on(agent.clear_context(&slot("s1"))).unwrap();
    ask(&agent, "s2", "second").unwrap();
    agent
}

#[test]
fn every_kind_of_record_is_registered_and_deleted_with_its_session_and_its_user() {
    let store = memory();
    let agent = lived_in(&store);
    let mut running = begin(&agent, "s1", "third");
    while let Some(event) = block_on(running.next()) {
        if matches!(event.event, lockgate::event::Event::TextDelta { .. }) {
            break;
        }
    }
    let kinds: BTreeSet<String> = keys(&store).iter().map(|key| keys::kind(key)).collect();
    let known = |kind: &String| keys::KINDS.contains(&kind.as_str());
    assert!(
        kinds.iter().all(known),
        "add the new kind to KINDS, and see to its deletion: {kinds:?}"
    );
    assert!(kinds.contains("search"), "the session has no segment: {kinds:?}");
    assert!(kinds.len() >= 6, "the session has hardly anything: {kinds:?}");
    let mut deleting = agent.delete_session(&slot("s1"));
    assert!(poll_once(&mut deleting).is_pending());
    assert_eq!(block_on(running.finish()).unwrap_err().error.kind(), ErrorKind::NoSuchSession);
    block_on(deleting).unwrap();
    let of_first: Vec<_> = keys(&store).into_iter().filter(|key| key.contains("t.s1")).collect();
    assert_eq!(of_first, ["1.t.helper/t.alice/slot/t.s1/head"], "only the tombstone is left");
    block_on(agent.delete_user(Some("alice"))).unwrap();
    assert_eq!(keys(&store), Vec::<String>::new());
}

#[test]
fn g13_deleting_a_user_during_calls_neither_hangs_nor_leaves_a_record() {
    let store = memory();
    let agent = lived_in(&store);
    let mut running = begin(&agent, "s2", "third");
    let mut waiting = begin(&agent, "s2", "fourth");
    block_on(running.next());
    block_on(waiting.next());
    let mut deleting = agent.delete_user(Some("alice"));
    assert!(poll_once(&mut deleting).is_pending());
    for call in [&mut running, &mut waiting] {
        assert_eq!(block_on(call.finish()).unwrap_err().error.kind(), ErrorKind::NoSuchSession);
    }
    block_on(deleting).unwrap();
    assert_eq!((keys(&store).len(), agent.n_busy()), (0, 0));
}
