//! Side branches: turns put aside after a conflict, and resends, while other nodes write.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::event::Reason;
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Capabilities, Committed, Host, Page, Record, Store};
use lockgate::state::{Facts, Persistence};
use lockgate::store::Sessions;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::format::entry::{EntryKind, Outcome};
use lockgate::store::format::input::Input;
use lockgate::store::session::{Session, Summary, TurnCommit, ViewChange};

type Meanwhile = Option<Box<dyn FnOnce()>>;

/// A store in which other nodes act just before our commits arrive.
struct Busy {
    inner: Rc<MemoryStore>,
    before: RefCell<VecDeque<Meanwhile>>,
    /// What the other nodes do just before we read the log.
    before_looking: RefCell<VecDeque<Meanwhile>>,
    /// From this commit on, operations are applied but report a failure.
    silent_from: Cell<usize>,
}

impl Busy {
    fn new(place: &Rc<MemoryStore>, before: impl Into<VecDeque<Meanwhile>>) -> Rc<Busy> {
        let (inner, before) = (Rc::clone(place), RefCell::new(before.into()));
        let (before_looking, silent_from) = (RefCell::default(), Cell::new(usize::MAX));
        Rc::new(Busy { inner, before, before_looking, silent_from })
    }

    fn is_looked_at(&self, key: &str) {
        if key.contains("/log/") {
            let meanwhile = self.before_looking.borrow_mut().pop_front().flatten();
            meanwhile.into_iter().for_each(|others| others());
        }
    }

    fn heard<T>(&self, answer: Result<T>) -> Result<T> {
        let is_silent = self.silent_from.get() == 0;
        let unheard = || Error::new(ErrorKind::StoreUnavailable, "nobody hears of it");
        answer.and_then(|it| if is_silent { Err(unheard()) } else { Ok(it) })
    }
}

impl Store for Busy {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        keys.iter().for_each(|key| self.is_looked_at(key));
        Box::pin(async move { self.heard(self.inner.get(keys).await) })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.is_looked_at(prefix);
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let meanwhile = self.before.borrow_mut().pop_front().flatten();
        meanwhile.into_iter().for_each(|others| others());
        self.silent_from.set(self.silent_from.get().saturating_sub(1));
        Box::pin(async move { self.heard(self.inner.commit(batch).await) })
    }
}

fn sessions(store: Rc<dyn Store>) -> Sessions {
    Sessions::new("helper", store, Rc::new(HostHandle(TestHost::new())) as Rc<dyn Host>, 1_000)
}

fn message(role: Role, text: &str) -> Rc<Message> {
    let id = format!("id of {text}");
    Rc::new(Message { id, ..Message::draft(role, vec![Block::text(text)]) })
}

fn input(call_id: &str) -> Input {
    Input {
        call_id: call_id.to_owned(),
        named: false,
        messages: vec![message(Role::User, call_id)],
        answers: Vec::new(),
        asked: None,
        resends: false,
        from: None,
        holds_permissions: false,
        earlier: None,
        path: None,
        rest: Default::default(),
    }
}

fn turn(id: &str, kind: EntryKind, input: Input, messages: Vec<Rc<Message>>) -> TurnCommit {
    TurnCommit {
        id: id.to_owned(),
        kind,
        input,
        joined: Vec::new(),
        messages,
        changes: Vec::new(),
        outcome: Some(Outcome::ended(Reason::Stop)),
        facts: Facts::default(),
        view_change: Default::default(),
        is_forgotten: false,
        left_out: None,
        pieces: Vec::new(),
        told_tasks: Vec::new(),
    }
}

/// How many entries of the log contain this message.
fn n_logged(place: &Rc<MemoryStore>, text: &str) -> usize {
    let records = block_on(place.list("", Page::default())).unwrap();
    let id = format!("id of {text}");
    let log = records.iter().filter(|(key, _)| key.contains("/log/"));
    log.filter(|(_, record)| String::from_utf8_lossy(&record.value).contains(&id)).count()
}

/// Another node recovers an input, as that of a call that was cut off.
fn recovers(place: &Rc<MemoryStore>, call_id: &'static str) -> Meanwhile {
    let place = Rc::clone(place);
    Some(Box::new(move || {
        let theirs = sessions(place);
        let mut session = block_on(theirs.load(&slot("s1"), None)).unwrap();
        let input = input(call_id);
        let said = input.messages.clone();
        let recovered = turn(&format!("r{call_id}"), EntryKind::Recovered, input, said);
        assert!(block_on(theirs.recover(&mut session, &recovered)).unwrap());
    }))
}

#[test]
fn inputs_recovered_by_another_node_are_not_repeated_when_the_turn_is_put_aside() {
    let place = Rc::new(MemoryStore::new());
    // The first save finds the question recovered; the next save finds the joined input recovered too.
    let before = [None, None, recovers(&place, "asked"), recovers(&place, "joined")];
    let ours = sessions(Busy::new(&place, before));
    let mut session = block_on(ours.load(&slot("s1"), None)).unwrap();
    assert!(block_on(ours.accept(&mut session, &input("asked"))).unwrap());
    assert!(block_on(ours.accept(&mut session, &input("joined"))).unwrap());
    let said = ["asked", "joined"].map(|text| message(Role::User, text));
    let said = said.into_iter().chain([message(Role::Assistant, "answer")]).collect();
    let answered = turn("t", EntryKind::Turn, input("asked"), said);
    let answered = TurnCommit { joined: vec![input("joined").again()], ..answered };
    let error = block_on(ours.save_turn(&mut session, &answered)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
    assert_eq!(n_logged(&place, ""), 3, "two recovered inputs, and the answer on a side branch");
    for text in ["asked", "joined", "answer"] {
        assert_eq!(n_logged(&place, text), 1, "{text} is in the log once");
    }
}

/// Rewinds a session to before its last question, as a resend does.
fn taken_back(sessions: &Sessions, call_id: &str) -> (Session, Input) {
    let mut session = block_on(sessions.load(&slot("s1"), None)).unwrap();
    let asked = Input { resends: true, ..input(call_id) };
    let rewound = block_on(sessions.rewind(&mut session, Persistence::ALL, &asked));
    let input = Input { messages: rewound.unwrap().unwrap().0, ..asked };
    assert!(block_on(sessions.accept(&mut session, &input)).unwrap());
    (session, input)
}

/// A session with one answered question.
fn answered() -> Rc<MemoryStore> {
    let place = Rc::new(MemoryStore::new());
    let sessions = sessions(Rc::clone(&place) as _);
    let mut session = block_on(sessions.load(&slot("s1"), None)).unwrap();
    assert!(block_on(sessions.accept(&mut session, &input("asked"))).unwrap());
    let said = vec![message(Role::User, "asked"), message(Role::Assistant, "answer")];
    let turn = turn("t", EntryKind::Turn, input("asked"), said);
    block_on(sessions.save_turn(&mut session, &turn)).unwrap();
    place
}

#[test]
fn a_step_stored_under_another_number_is_continued_from_there() {
    let place = answered();
    let theirs = sessions(Rc::clone(&place) as _);
    let (mut other, input) = taken_back(&theirs, "theirs");
    let failed = Outcome::failed("MODEL_ERROR", "nothing was said");
    let failed =
        TurnCommit { outcome: Some(failed), ..turn("f", EntryKind::Turn, input, Vec::new()) };
    let fails = move || assert!(block_on(theirs.save_turn(&mut other, &failed)).is_ok());
    let store = Busy::new(&place, [None, Some(Box::new(fails) as _)]);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let step = TurnCommit { outcome: None, ..turn("s", EntryKind::Step, input, Vec::new()) };
    // The first try conflicts with the failed turn of another node; the second is applied but reports a failure.
    store.silent_from.set(2);
    block_on(ours.save_turn(&mut session, &step)).unwrap_err();
    store.silent_from.set(usize::MAX);
    block_on(ours.save_turn(&mut session, &step)).unwrap();
    let leaf = session.head.unwrap().leaf.unwrap();
    assert_eq!((leaf.seq, leaf.id.as_str()), (2, "s"));
}

#[test]
fn a_stored_step_is_not_continued_after_another_node_recovered_its_input() {
    let place = answered();
    let store = Busy::new(&place, []);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let step =
        TurnCommit { outcome: None, ..turn("s", EntryKind::Step, input.clone(), Vec::new()) };
    store.silent_from.set(1);
    block_on(ours.save_turn(&mut session, &step)).unwrap_err();
    store.silent_from.set(usize::MAX);
    let mut found = block_on(ours.load(&slot("s1"), None)).unwrap();
    let recovered = turn("r", EntryKind::Recovered, input.again(), Vec::new());
    assert!(block_on(ours.recover_resend(&mut found, &recovered, &|_| Vec::new())).unwrap());
    assert!(block_on(ours.save_turn(&mut session, &step)).unwrap().overtaken);
    let answer = turn("a", EntryKind::Turn, input, vec![message(Role::Assistant, "again")]);
    let error = block_on(ours.save_turn(&mut session, &answer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
}

#[test]
fn a_step_stored_after_a_summary_is_not_repeated_when_its_turn_is_put_aside() {
    let place = answered();
    let store = Busy::new(&place, []);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let (id, message) = ("y".to_owned(), message(Role::User, "in short"));
    let summary = Summary { id, message, cut: None, replaced: Vec::new() };
    let view_change = ViewChange { summary: Some(summary), ..ViewChange::default() };
    let said = vec![self::message(Role::Assistant, "again")];
    let answer = turn("a", EntryKind::Turn, input.clone(), said.clone());
    let step = turn("s", EntryKind::Step, input, said);
    store.silent_from.set(1);
    block_on(ours.save_turn(&mut session, &TurnCommit { outcome: None, view_change, ..step }))
        .unwrap_err();
    store.silent_from.set(usize::MAX);
    block_on(ours.save_turn(&mut session, &answer)).unwrap_err();
    assert_eq!(n_logged(&place, "again"), 1);
}

/// Our agent with a session, and an action that replaces this session from another node.
fn made_anew() -> (Agent, Rc<Busy>, Meanwhile) {
    let place = Rc::new(MemoryStore::new());
    let store = Busy::new(&place, []);
    let model = || ScriptedModel::new(["one", "two", "three"].map(Line::says));
    let ours = agent_on(&(Rc::clone(&store) as _), model());
    ask(&ours, "s1", &"first ".repeat(1_000)).unwrap();
    let theirs = agent_on(&(place as _), model());
    let anew = move || {
        block_on(theirs.delete_session(&slot("s1"))).unwrap();
        ask(&theirs, "s1", "second").unwrap();
    };
    (ours, store, Some(Box::new(anew)))
}

#[test]
fn a_resend_that_reads_a_session_while_it_is_replaced_answers_the_new_question() {
    let (ours, store, anew) = made_anew();
    store.before_looking.borrow_mut().push_back(anew);
    let again = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    assert_eq!(block_on(ours.begin(again).unwrap().finish()).unwrap().text, "two");
    assert_eq!(told(&ours, "s1"), ["user: second", "assistant: two"]);
}

#[test]
fn a_read_during_the_replacement_of_a_session_returns_the_whole_new_session() {
    let (ours, store, anew) = made_anew();
    store.before_looking.borrow_mut().push_back(anew);
    assert_eq!(told(&ours, "s1"), ["user: second", "assistant: one"]);
}

#[test]
fn undoing_a_summary_whose_session_was_replaced_fails_with_superseded() {
    let (ours, store, anew) = made_anew();
    ask(&ours, "s1", "more").unwrap();
    block_on(ours.compact(&slot("s1"))).unwrap();
    // The summary and the messages after it are read, then the messages it replaced.
    store.before_looking.borrow_mut().extend([None, None, anew]);
    let error = block_on(ours.undo_compaction(&slot("s1"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
}
