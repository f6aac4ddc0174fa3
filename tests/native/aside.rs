//! A turn that is kept beside the path, and a path that is built beside another, while others go on writing.

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
use lockgate::store::entry::{EntryKind, Outcome};
use lockgate::store::input::Input;
use lockgate::store::memory::MemoryStore;
use lockgate::store::session::{Reshaping, Session, Summary, Turn};

type Meanwhile = Option<Box<dyn FnOnce()>>;

/// A store in which others do something just before our commits arrive.
struct Busy {
    inner: Rc<MemoryStore>,
    before: RefCell<VecDeque<Meanwhile>>,
    /// What they do just before we look at the log.
    before_looking: RefCell<VecDeque<Meanwhile>>,
    /// From this commit on everything is done, and nobody hears of it.
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
        rest: Default::default(),
    }
}

fn turn(id: &str, kind: EntryKind, input: Input, messages: Vec<Rc<Message>>) -> Turn {
    Turn {
        id: id.to_owned(),
        kind,
        input,
        joined: Vec::new(),
        messages,
        changes: Vec::new(),
        outcome: Some(Outcome::ended(Reason::Stop)),
        facts: Facts::default(),
        reshaping: Default::default(),
        is_forgotten: false,
        heard: Vec::new(),
    }
}

/// How many entries of the log say this.
fn n_logged(place: &Rc<MemoryStore>, text: &str) -> usize {
    let records = block_on(place.list("", Page::default())).unwrap();
    let id = format!("id of {text}");
    let log = records.iter().filter(|(key, _)| key.contains("/log/"));
    log.filter(|(_, record)| String::from_utf8_lossy(&record.value).contains(&id)).count()
}

/// Somebody else takes an input up, as that of a call that was cut off.
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
fn what_is_recovered_elsewhere_while_a_turn_is_put_aside_is_not_said_again() {
    let place = Rc::new(MemoryStore::new());
    // The first save meets that the question was recovered; the next one, that what had joined it was, too.
    let before = [None, None, recovers(&place, "asked"), recovers(&place, "joined")];
    let ours = sessions(Busy::new(&place, before));
    let mut session = block_on(ours.load(&slot("s1"), None)).unwrap();
    assert!(block_on(ours.accept(&mut session, &input("asked"))).unwrap());
    assert!(block_on(ours.accept(&mut session, &input("joined"))).unwrap());
    let said = ["asked", "joined"].map(|text| message(Role::User, text));
    let said = said.into_iter().chain([message(Role::Assistant, "answer")]).collect();
    let answered = turn("t", EntryKind::Turn, input("asked"), said);
    let answered = Turn { joined: vec![input("joined").again()], ..answered };
    let error = block_on(ours.finish(&mut session, &answered)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
    assert_eq!(n_logged(&place, ""), 3, "what was recovered, twice, and the answer beside it");
    for text in ["asked", "joined", "answer"] {
        assert_eq!(n_logged(&place, text), 1, "{text} is in the log once");
    }
}

/// Takes a session back to before its last question, to answer it again.
fn taken_back(sessions: &Sessions, call_id: &str) -> (Session, Input) {
    let mut session = block_on(sessions.load(&slot("s1"), None)).unwrap();
    let messages = block_on(sessions.rewind(&mut session, Persistence::ALL)).unwrap().unwrap();
    let input = Input { messages, resends: true, ..input(call_id) };
    assert!(block_on(sessions.accept(&mut session, &input)).unwrap());
    (session, input)
}

/// A session with a question that is answered.
fn answered() -> Rc<MemoryStore> {
    let place = Rc::new(MemoryStore::new());
    let sessions = sessions(Rc::clone(&place) as _);
    let mut session = block_on(sessions.load(&slot("s1"), None)).unwrap();
    assert!(block_on(sessions.accept(&mut session, &input("asked"))).unwrap());
    let said = vec![message(Role::User, "asked"), message(Role::Assistant, "answer")];
    let turn = turn("t", EntryKind::Turn, input("asked"), said);
    block_on(sessions.finish(&mut session, &turn)).unwrap();
    place
}

#[test]
fn a_step_that_arrived_under_another_number_is_gone_on_from_where_it_is() {
    let place = answered();
    let theirs = sessions(Rc::clone(&place) as _);
    let (mut other, input) = taken_back(&theirs, "theirs");
    let failed = Outcome::failed("MODEL_ERROR", "nothing was said");
    let failed = Turn { outcome: Some(failed), ..turn("f", EntryKind::Turn, input, Vec::new()) };
    let fails = move || assert!(block_on(theirs.finish(&mut other, &failed)).is_ok());
    let store = Busy::new(&place, [None, Some(Box::new(fails) as _)]);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let step = Turn { outcome: None, ..turn("s", EntryKind::Step, input, Vec::new()) };
    // The first try meets another's failed turn; the second arrives, and nobody hears of it.
    store.silent_from.set(2);
    block_on(ours.finish(&mut session, &step)).unwrap_err();
    store.silent_from.set(usize::MAX);
    block_on(ours.finish(&mut session, &step)).unwrap();
    let leaf = session.head.unwrap().leaf.unwrap();
    assert_eq!((leaf.seq, leaf.id.as_str()), (2, "s"));
}

#[test]
fn a_step_that_arrived_is_not_gone_on_from_once_its_input_was_taken_up_elsewhere() {
    let place = answered();
    let store = Busy::new(&place, []);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let step = Turn { outcome: None, ..turn("s", EntryKind::Step, input.clone(), Vec::new()) };
    store.silent_from.set(1);
    block_on(ours.finish(&mut session, &step)).unwrap_err();
    store.silent_from.set(usize::MAX);
    let mut found = block_on(ours.load(&slot("s1"), None)).unwrap();
    let recovered = turn("r", EntryKind::Recovered, input.again(), Vec::new());
    assert!(block_on(ours.recover_resend(&mut found, &recovered, &|_| Vec::new())).unwrap());
    assert!(block_on(ours.finish(&mut session, &step)).unwrap().overtaken);
    let answer = turn("a", EntryKind::Turn, input, vec![message(Role::Assistant, "again")]);
    let error = block_on(ours.finish(&mut session, &answer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
}

#[test]
fn a_step_that_arrived_behind_a_summary_is_not_said_again_when_its_turn_is_put_aside() {
    let place = answered();
    let store = Busy::new(&place, []);
    let ours = sessions(Rc::clone(&store) as _);
    let (mut session, input) = taken_back(&ours, "ours");
    let (id, message) = ("y".to_owned(), message(Role::User, "in short"));
    let summary = Summary { id, message, cut: None, replaced: Vec::new() };
    let reshaping = Reshaping { summary: Some(summary), ..Reshaping::default() };
    let said = vec![self::message(Role::Assistant, "again")];
    let answer = turn("a", EntryKind::Turn, input.clone(), said.clone());
    let step = turn("s", EntryKind::Step, input, said);
    store.silent_from.set(1);
    block_on(ours.finish(&mut session, &Turn { outcome: None, reshaping, ..step })).unwrap_err();
    store.silent_from.set(usize::MAX);
    block_on(ours.finish(&mut session, &answer)).unwrap_err();
    assert_eq!(n_logged(&place, "again"), 1);
}

/// Our agent with a session, and what makes another in its place, elsewhere.
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
fn a_resend_whose_session_is_made_anew_while_it_is_read_answers_what_was_asked_there() {
    let (ours, store, anew) = made_anew();
    store.before_looking.borrow_mut().push_back(anew);
    let again = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    assert_eq!(block_on(ours.begin(again).unwrap().finish()).unwrap().text, "two");
    assert_eq!(told(&ours, "s1"), ["user: second", "assistant: two"]);
}

#[test]
fn whoever_reads_a_session_that_is_made_anew_reads_all_of_the_new_one() {
    let (ours, store, anew) = made_anew();
    store.before_looking.borrow_mut().push_back(anew);
    assert_eq!(told(&ours, "s1"), ["user: second", "assistant: one"]);
}

#[test]
fn a_summary_that_went_with_its_session_is_not_lost() {
    let (ours, store, anew) = made_anew();
    ask(&ours, "s1", "more").unwrap();
    block_on(ours.compact(&slot("s1"))).unwrap();
    // The summary and what follows it are read, and then what it stands for.
    store.before_looking.borrow_mut().extend([None, None, anew]);
    let error = block_on(ours.undo_compaction(&slot("s1"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
}
