//! Damage of one kind each: rings, heads with impossible views, lost records, entries of other sessions, older seals.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Format};
use lockgate::error::{Error, ErrorKind};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Page, Record, Store};
use lockgate::slot::Slot;
use lockgate::store::search::Query;
use serde_json::{Value, json};

const S1: &str = "1.t.helper/t.alice/slot/t.s1/";

fn answers(n: usize) -> Rc<ScriptedModel> {
    ScriptedModel::new((0..n).map(|n| Line::says(&format!("answer {n}"))))
}

/// A session with three turns.
fn talked() -> Rc<dyn Store> {
    let store = memory();
    let agent = agent_on(&store, answers(3));
    ["one", "two", "three"].iter().for_each(|text| drop(ask(&agent, "s1", text).unwrap()));
    store
}

fn records(store: &Rc<dyn Store>, prefix: &str) -> Vec<(String, Record)> {
    block_on(store.list(prefix, Page::default())).unwrap()
}

fn put(store: &Rc<dyn Store>, key: &str, revision: &str, value: Vec<u8>) {
    let put = vec![(key.to_owned(), value)];
    block_on(store.commit(&Batch { revision: revision.into(), put, ..Batch::default() })).unwrap();
}

/// Changes a record. It has no seal then, as if an older version had written it.
fn change(store: &Rc<dyn Store>, key: &str, change: impl FnOnce(&mut Value)) {
    let record = block_on(store.get(&[key.to_owned()])).unwrap().remove(0).unwrap();
    let mut value: Value = serde_json::from_slice(&unsealed(&record.value)).unwrap();
    change(&mut value);
    put(store, key, &record.revision, serde_json::to_vec(&value).unwrap());
}

/// What each reader of a session fails with.
fn refusals(store: &Rc<dyn Store>) -> Vec<(&'static str, Option<Error>)> {
    let agent = agent_on(store, answers(3));
    let s1 = slot("s1");
    let history = block_on(agent.history(&s1, None, 1_000));
    let id = history.as_ref().ok().and_then(|it| Some(it.first()?.id.clone()));
    let query = Query { text: "answer", user: Some("alice"), session: Some("s1"), limit: 9 };
    let to = Slot::new(Some("alice"), "copy").unwrap();
    vec![
        ("history", history.err()),
        ("state", block_on(agent.state(&s1)).err()),
        ("branches", block_on(agent.branches(&s1)).err()),
        ("export", block_on(agent.export_session(&s1, Format::Lockgate)).err()),
        ("search", block_on(agent.search(query)).err()),
        ("inspect", block_on(agent.inspect(&s1)).err()),
        ("fork", block_on(agent.fork(&s1, &to, id)).err()),
        ("resend", block_on(resend(&agent)).err()),
        ("call", ask(&agent, "s1", "go on").err().map(|failed| failed.error)),
    ]
}

async fn resend(agent: &Agent) -> Result<(), Error> {
    let again =
        lockgate::engine::CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    agent.begin(again)?.finish().await.map(|_| ()).map_err(|failed| failed.error)
}

fn assert_refused(store: &Rc<dyn Store>, but: &[&str], what: &str) {
    for (reader, error) in refusals(store).into_iter().filter(|(it, _)| !but.contains(it)) {
        let kind = error.as_ref().map(Error::kind);
        assert_eq!(kind, Some(ErrorKind::StoreCorrupt), "{reader}: {what}: {error:?}");
    }
}

fn log(store: &Rc<dyn Store>) -> Vec<String> {
    records(store, &format!("{S1}log/")).into_iter().map(|(key, _)| key).collect()
}

fn name(key: &str) -> &str {
    key.rsplit('/').next().unwrap()
}

#[test]
fn an_entry_that_is_its_own_parent_and_a_ring_of_entries_are_refused_and_repaired_with_their_messages()
 {
    for (child, parent) in [(0, 0), (1, 1), (2, 2), (0, 2), (1, 2)] {
        let store = talked();
        let keys = log(&store);
        change(&store, &keys[child], |entry| entry["parent"] = json!(name(&keys[parent])));
        assert_refused(&store, &[], &format!("{child} below {parent}"));
        let agent = agent_on(&store, answers(1));
        let listed = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
        assert_eq!(listed.len(), 1);
        let info = block_on(agent.repair_session(&slot("s1"))).unwrap().unwrap();
        assert_eq!(info.messages, 6, "every message is still there");
        ask(&agent, "s1", "go on").unwrap();
        assert_eq!(told(&agent, "s1").len(), 8);
    }
}

#[test]
fn a_head_whose_view_is_reversed_or_beyond_the_log_is_repaired_and_works() {
    let beyond = "000000000099.beyond";
    let changes: [fn(&mut Value, &str); 5] = [
        |view, _| {
            let (from, to) = (view["from"].clone(), view["to"].clone());
            (view["from"], view["to"]) = (to, from);
        },
        |view, beyond| view["to"][0] = json!(beyond),
        |view, _| view["to"][1] = json!(99),
        |view, beyond| *view = json!({ "summary": beyond }),
        |view, beyond| view["from"][0] = json!(beyond),
    ];
    for spoil in changes {
        let store = talked();
        change(&store, &format!("{S1}head"), |head| spoil(&mut head["view"][0], beyond));
        let agent = agent_on(&store, answers(2));
        let refused = ask(&agent, "s1", "go on").unwrap_err().error;
        assert_eq!(refused.kind(), ErrorKind::StoreCorrupt);
        let info = block_on(agent.repair_session(&slot("s1"))).unwrap().unwrap();
        assert_eq!((info.session_id.as_str(), info.messages), ("s1", 6));
        ask(&agent, "s1", "go on").unwrap();
        assert_eq!(block_on(agent.state(&slot("s1"))).unwrap().context.len(), 8);
    }
}

#[test]
fn a_view_that_shows_the_log_many_times_is_refused() {
    let store = talked();
    change(&store, &format!("{S1}head"), |head| {
        let piece = head["view"][0].clone();
        head["view"] = std::iter::repeat_n(piece, 10_000).collect();
    });
    let agent = agent_on(&store, answers(1));
    let error = block_on(agent.state(&slot("s1"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
}

#[test]
fn a_lost_entry_is_noticed_by_every_reader() {
    for place in 0..3 {
        let store = talked();
        let remove = vec![log(&store).remove(place)];
        block_on(store.commit(&Batch { revision: "x".into(), remove, ..Batch::default() }))
            .unwrap();
        // These two read the newest entries only, as far as they need them.
        let but: &[&str] = if place < 2 { &["branches", "resend"] } else { &[] };
        assert_refused(&store, but, &format!("without entry {place}"));
    }
}

#[test]
fn a_lost_branch_is_noticed_by_the_readers_of_branches() {
    let store = talked();
    let agent = agent_on(&store, answers(1));
    block_on(resend(&agent)).unwrap();
    assert_eq!(block_on(agent.branches(&slot("s1"))).unwrap().len(), 2);
    let remove = vec![records(&store, &format!("{S1}branch/")).remove(0).0];
    block_on(store.commit(&Batch { revision: "x".into(), remove, ..Batch::default() })).unwrap();
    assert_eq!(told(&agent, "s1").len(), 6);
    let error = block_on(agent.branches(&slot("s1"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    assert!(block_on(agent.export_session(&slot("s1"), Format::Lockgate)).is_err());
    block_on(agent.repair_session(&slot("s1"))).unwrap();
    assert_eq!(block_on(agent.branches(&slot("s1"))).unwrap().len(), 1);
}

#[test]
fn a_lost_input_of_a_call_that_was_cut_off_is_noticed() {
    let store = talked();
    let agent = agent_on(&store, ScriptedModel::new([Line::Hangs(Vec::new())]));
    let mut call = begin(&agent, "s1", "four");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    drop(call);
    let remove = vec![records(&store, &format!("{S1}input/")).remove(0).0];
    block_on(store.commit(&Batch { revision: "x".into(), remove, ..Batch::default() })).unwrap();
    assert_refused(
        &store,
        &["state", "branches", "export", "inspect", "resend", "fork"],
        "an input",
    );
    let agent = agent_on(&store, answers(1));
    block_on(agent.repair_session(&slot("s1"))).unwrap();
    ask(&agent, "s1", "five").unwrap();
}

#[test]
fn entries_of_other_sessions_are_never_shown() {
    for (user, session) in [("bob", "s1"), ("alice", "s2")] {
        for keeps_revision in [true, false] {
            let store = talked();
            let agent = agent_on(&store, answers(3));
            let foreign = Slot::new(Some(user), session).unwrap();
            for text in ["a secret", "two", "three"] {
                let request = lockgate::engine::CallRequest::new(foreign.clone(), text);
                block_on(agent.begin(request).unwrap().finish()).unwrap();
            }
            let of = format!("1.t.helper/t.{user}/slot/t.{session}/log/");
            for (key, (from, record)) in log(&store).iter().zip(records(&store, &of)) {
                let revision = if keeps_revision { record.revision.as_str() } else { "x.9.x" };
                put(&store, key, revision, record.value.clone());
                put(&store, &format!("{S1}log/{}", name(&from)), revision, record.value);
            }
            let before = refusals(&store);
            for (reader, error) in before {
                assert_eq!(error.map(|it| it.kind()), Some(ErrorKind::StoreCorrupt), "{reader}");
            }
            let agent = agent_on(&store, answers(3));
            block_on(agent.repair_session(&slot("s1"))).unwrap();
            assert!(!told(&agent, "s1").iter().any(|it| it.contains("secret")));
            let others = block_on(agent.history(&foreign, None, 99)).unwrap();
            assert_eq!(others.len(), 6);
        }
    }
}

#[test]
fn records_without_seals_are_believed_and_a_seal_of_another_revision_is_ignored() {
    let store = talked();
    let then = told(&agent_on(&store, answers(0)), "s1");
    for (key, record) in records(&store, "") {
        put(&store, &key, &record.revision, unsealed(&record.value));
    }
    assert_eq!(told(&agent_on(&store, answers(0)), "s1"), then);

    let store = talked();
    let key = format!("{S1}head");
    let record = block_on(store.get(std::slice::from_ref(&key))).unwrap().remove(0).unwrap();
    let mut head: Value = serde_json::from_slice(&record.value).unwrap();
    head["card"]["title"] = "by an older version".into();
    head["mood"] = "kept".into();
    put(&store, &key, &format!("{}x", record.revision), serde_json::to_vec(&head).unwrap());
    let agent = agent_on(&store, answers(1));
    assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().title, "by an older version");
    ask(&agent, "s1", "four").unwrap();
    assert_eq!(told(&agent, "s1").len(), 8);
    let head = block_on(store.get(std::slice::from_ref(&key))).unwrap().remove(0).unwrap();
    assert!(String::from_utf8(head.value.clone()).unwrap().contains("\"mood\":\"kept\""));
    // Its new seal is checked again.
    let spoilt = String::from_utf8(head.value).unwrap().replace("by an older", "by any older");
    put(&store, &key, &head.revision, spoilt.into_bytes());
    let error = block_on(agent.session(&slot("s1"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
}

#[test]
fn a_store_that_writes_json_in_its_own_way_keeps_the_seals() {
    let store = talked();
    for (key, record) in records(&store, "") {
        let value: Value = serde_json::from_slice(&record.value).unwrap();
        let text = format!("{value:#}").replace("\"seconds\": 0.0", "\"seconds\": 0");
        put(&store, &key, &record.revision, text.into_bytes());
    }
    assert_eq!(told(&agent_on(&store, answers(0)), "s1").len(), 6);
}
