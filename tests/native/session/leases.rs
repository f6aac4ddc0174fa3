//! Nodes that share a store: which node has a session open, which is next, and how the session of a dead node is freed.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Call, CallRequest, Cause, Options, Timeouts};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use lockgate::store::backend::memory_store::MemoryStore;
use serde_json::{Value, json};

/// A node of a cluster: an agent over the shared store and the shared clock.
fn node(store: &Rc<dyn Store>, clock: &Rc<TestHost>, lines: Vec<Line>) -> Agent {
    let host = HostHandle(Rc::clone(clock));
    let timeouts = Timeouts { lock: 20_000, idle: 120_000, ..Timeouts::default() };
    let options = Options { timeouts, ..Options::new("helper") };
    let builder = Builder::new(options).model(ScriptedModel::new(lines));
    builder.store(Rc::clone(store)).host(Rc::new(host)).build().unwrap()
}

fn cluster() -> (Rc<dyn Store>, Rc<TestHost>) {
    (Rc::new(MemoryStore::shared_by(Shared::Cluster)), TestHost::new())
}

fn says(text: &str) -> Vec<Line> {
    vec![Line::says(text)]
}

/// Runs a call until it waits for time to pass, and returns its events.
fn moved(call: &mut Call) -> Vec<Event> {
    let mut shown = Vec::new();
    loop {
        let mut next: Local<'_, _> = Box::pin(call.next());
        match poll_once(&mut next) {
            Poll::Ready(Some(event)) => shown.push(event.event),
            Poll::Ready(None) | Poll::Pending => return shown,
        }
    }
}

/// A call whose model has sent one word and then hangs.
fn talking(store: &Rc<dyn Store>, clock: &Rc<TestHost>) -> (Agent, Call) {
    let agent = node(store, clock, vec![Line::Hangs(words("well"))]);
    let mut call = begin(&agent, "s1", "first");
    moved(&mut call);
    (agent, call)
}

/// The lease in the head: which node has the session open.
fn open(store: &Rc<dyn Store>) -> Value {
    let keys = ["1.t.helper/t.alice/slot/t.s1/head".to_owned()];
    let record = block_on(store.get(&keys)).unwrap().pop().flatten().unwrap();
    let head: Value = serde_json::from_slice(&record.value).unwrap();
    head["open"].clone()
}

/// Replaces the lease in the head, as another node would.
fn rewrite(store: &Rc<dyn Store>, open: Value) {
    let key = "1.t.helper/t.alice/slot/t.s1/head".to_owned();
    let record = block_on(store.get(std::slice::from_ref(&key))).unwrap().pop().flatten().unwrap();
    let mut head: Value = serde_json::from_slice(&record.value).unwrap();
    head["open"] = open;
    let put = vec![(key, unsealed(&serde_json::to_vec(&head).unwrap()))];
    block_on(store.commit(&Batch { revision: record.revision, put, ..Batch::default() })).unwrap();
}

#[test]
fn g15_a_call_waits_for_the_call_of_another_node_and_continues_after_it() {
    let (store, clock) = cluster();
    let (_first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, says("second answer"));
    let mut waiting = begin(&second, "s1", "second");
    let shown = moved(&mut waiting);
    assert!(matches!(shown.last(), Some(Event::Queued { ahead: 1 })), "{shown:?}");
    running.cancel().ask(Cause::Stopped(Vec::new()));
    block_on(running.finish()).unwrap();
    clock.pass(300.0);
    assert_eq!(block_on(waiting.finish()).unwrap().text, "second answer");
    let told = told(&second, "s1");
    let expected = ["user: first", "assistant: well", "user: second", "assistant: second answer"];
    assert_eq!(told, expected);
}

#[test]
fn a_call_that_ends_reserves_the_session_for_the_node_that_waits_longest() {
    let (store, clock) = cluster();
    let (first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, says("second"));
    let mut waiting = begin(&second, "s1", "from the second node");
    moved(&mut waiting);
    assert_eq!(open(&store)["waiting"].as_array().unwrap().len(), 1);
    running.cancel().ask(Cause::Stopped(Vec::new()));
    block_on(running.finish()).unwrap();
    assert_eq!(open(&store)["callId"], json!(""), "the session is reserved for the next node");
    // The node that had the session would be faster, but waits too.
    let mut again = begin(&first, "s1", "once more from the first");
    assert!(moved(&mut again).iter().any(|it| matches!(it, Event::Queued { .. })));
    clock.pass(10.0);
    block_on(waiting.finish()).unwrap();
    assert_eq!(told(&second, "s1").last().unwrap(), "assistant: second");
}

#[test]
fn a_session_reserved_for_a_node_that_never_comes_is_soon_free() {
    let (store, clock) = cluster();
    let agent = node(&store, &clock, vec![Line::says("one"), Line::says("two")]);
    ask(&agent, "s1", "first").unwrap();
    let until = 1_790_000_002_000_u64;
    rewrite(&store, json!({ "callId": "", "node": "away", "until": until }));
    let mut call = begin(&agent, "s1", "second");
    moved(&mut call);
    clock.pass(2_500.0);
    assert_eq!(block_on(call.finish()).unwrap().text, "two");
}

#[test]
fn an_input_of_a_node_that_stopped_renewing_is_recovered_when_the_lease_expires() {
    let (store, clock) = cluster();
    let (dead, call) = talking(&store, &clock);
    drop((dead, call));
    let second = node(&store, &clock, says("here"));
    let mut waiting = begin(&second, "s1", "anybody there?");
    moved(&mut waiting);
    clock.pass(5_000.0);
    assert!(moved(&mut waiting).is_empty(), "the lease is not over");
    clock.pass(6_000.0);
    block_on(waiting.finish()).unwrap();
    let told = told(&second, "s1");
    assert_eq!((told[0].as_str(), told.len()), ("user: first", 4));
    assert!(told[1].contains("cut off"), "{told:?}");
}

#[test]
fn the_input_of_a_node_that_is_known_to_be_gone_is_recovered_at_once() {
    let (store, clock) = cluster();
    let (dead, call) = talking(&store, &clock);
    drop((dead, call));
    let mut lease = open(&store);
    lease["node"] = json!(format!("{DEAD}-1"));
    rewrite(&store, lease);
    let second = node(&store, &clock, says("here"));
    assert_eq!(ask(&second, "s1", "anybody there?").unwrap().text, "here");
}

#[test]
fn a_long_call_renews_its_lease_and_keeps_the_session() {
    let (store, clock) = cluster();
    let (_first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, says("second"));
    let mut waiting = begin(&second, "s1", "second");
    for _ in 0..19 {
        clock.pass(1_000.0);
        moved(&mut running);
        assert!(!moved(&mut waiting).iter().any(|it| matches!(it, Event::Accepted { .. })));
    }
    running.cancel().ask(Cause::Stopped(Vec::new()));
    assert_eq!(block_on(running.finish()).unwrap().reason, Reason::Interrupted);
    clock.pass(300.0);
    assert_eq!(block_on(waiting.finish()).unwrap().text, "second");
}

#[test]
fn b_19_a_lease_dated_too_far_ahead_ends_when_it_is_not_renewed() {
    let (store, clock) = cluster();
    let (dead, call) = talking(&store, &clock);
    drop((dead, call));
    let mut lease = open(&store);
    lease["until"] = json!(lease["until"].as_u64().unwrap() + 3_600_000);
    rewrite(&store, lease);
    let second = node(&store, &clock, says("here"));
    let mut waiting = begin(&second, "s1", "anybody there?");
    for _ in 0..10 {
        moved(&mut waiting);
        clock.pass(1_000.0);
    }
    assert!(!moved(&mut waiting).iter().any(|it| matches!(it, Event::Accepted { .. })));
    clock.pass(1_000.0);
    assert_eq!(block_on(waiting.finish()).unwrap().text, "here");
}

#[test]
fn a_node_that_waits_too_long_gives_up_and_stores_nothing() {
    let (store, clock) = cluster();
    let (_first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, Vec::new());
    let mut waiting = begin(&second, "s1", "second");
    for _ in 0..21 {
        moved(&mut running);
        moved(&mut waiting);
        clock.pass(1_000.0);
    }
    let failed = block_on(waiting.finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Timeout);
    assert_eq!(told(&second, "s1"), ["user: first"], "the second is not accepted");
}

#[test]
fn a_call_can_be_interrupted_from_another_node_with_the_users_next_message() {
    let (store, clock) = cluster();
    let (_first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, Vec::new());
    let alice = slot("s1");
    let mut interrupting: Local<'_, _> =
        Box::pin(second.interrupt_elsewhere(&alice, said("never mind")));
    assert!(poll_once(&mut interrupting).is_pending());
    clock.pass(1_000.0);
    assert_eq!(block_on(running.finish()).unwrap().reason, Reason::Interrupted);
    clock.pass(300.0);
    assert!(block_on(interrupting).unwrap(), "the running call took the interrupt");
    assert_eq!(told(&second, "s1").last().unwrap(), "user: never mind");
    let idle = slot("s2");
    assert!(!block_on(second.interrupt_elsewhere(&idle, Vec::new())).unwrap());
}

#[test]
fn changes_by_hand_wait_for_the_call_of_another_node() {
    let (store, clock) = cluster();
    let (_first, mut running) = talking(&store, &clock);
    let second = node(&store, &clock, Vec::new());
    let mut renaming = second.rename_session(&slot("s1"), "new name".to_owned());
    assert!(poll_once(&mut renaming).is_pending());
    running.cancel().ask(Cause::Stopped(Vec::new()));
    block_on(running.finish()).unwrap();
    clock.pass(300.0);
    block_on(renaming).unwrap();
    let info = block_on(second.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!((info.title.as_str(), info.messages), ("new name", 2));
    assert_eq!(open(&store), Value::Null, "the lease is released");
}

#[test]
fn a_store_of_one_process_has_no_leases() {
    let (store, clock) = (memory(), TestHost::new());
    let (_agent, _call) = talking(&store, &clock);
    assert_eq!(open(&store), Value::Null);
}

#[test]
fn a_waiting_call_that_is_aborted_stores_nothing_and_ends_at_once() {
    let (store, clock) = cluster();
    let (_first, _running) = talking(&store, &clock);
    let second = node(&store, &clock, Vec::new());
    let mut waiting = second.begin(CallRequest::new(slot("s1"), "second")).unwrap();
    moved(&mut waiting);
    waiting.cancel().ask(Cause::Aborted);
    let failed = block_on(waiting.finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Aborted);
}

/// A store in which another node changes the session first, for the given number of attempts to accept an input.
struct Crowded(Rc<dyn Store>, Cell<u32>);

impl Store for Crowded {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.0.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.0.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let accepts = batch.put.iter().any(|(key, _)| key.contains("/input/"));
        if accepts && self.1.get() > 0 {
            self.1.set(self.1.get() - 1);
            rewrite(&self.0, open(&self.0));
            return Box::pin(ready(Ok(Committed::Conflict)));
        }
        self.0.commit(batch)
    }
}

/// The end of a call that loses this many races, and the session's log after it.
fn crowded(others: u32) -> (std::result::Result<String, ErrorKind>, Vec<String>) {
    let (store, clock) = cluster();
    ask(&node(&store, &clock, says("one")), "s1", "first").unwrap();
    let crowd: Rc<dyn Store> = Rc::new(Crowded(Rc::clone(&store), Cell::new(others)));
    let agent = node(&crowd, &clock, says("two"));
    let mut call = begin(&agent, "s1", "second");
    let mut finishing: Local<'_, _> = Box::pin(call.finish());
    let ended = loop {
        match poll_once(&mut finishing) {
            Poll::Ready(ended) => break ended,
            Poll::Pending => clock.pass(5.0),
        }
    };
    let ended = ended.map(|reply| reply.text.clone()).map_err(|failed| failed.error.kind());
    (ended, told(&agent, "s1"))
}

#[test]
fn a_node_that_loses_many_races_keeps_trying() {
    let (ended, told) = crowded(40);
    assert_eq!(ended, Ok("two".to_owned()));
    assert_eq!(told.len(), 4);
}

#[test]
fn a_node_that_loses_every_race_gives_up_and_stores_nothing() {
    let (ended, told) = crowded(u32::MAX);
    assert_eq!(ended, Err(ErrorKind::Superseded));
    assert_eq!(told.len(), 2);
}
