//! A turn that is kept beside the path while others go on writing.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::support::*;
use lockgate::error::{ErrorKind, Result};
use lockgate::event::Reason;
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::port::{Batch, Capabilities, Committed, Host, Page, Record, Store};
use lockgate::state::Facts;
use lockgate::store::Sessions;
use lockgate::store::entry::{EntryKind, Outcome};
use lockgate::store::input::Input;
use lockgate::store::memory::MemoryStore;
use lockgate::store::session::Turn;

type Meanwhile = Option<Box<dyn FnOnce()>>;

/// A store in which others do something just before our commits arrive.
struct Busy {
    inner: Rc<MemoryStore>,
    before: RefCell<VecDeque<Meanwhile>>,
}

impl Store for Busy {
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
        let meanwhile = self.before.borrow_mut().pop_front().flatten();
        meanwhile.into_iter().for_each(|others| others());
        self.inner.commit(batch)
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
    let store = Rc::new(Busy { inner: Rc::clone(&place), before: RefCell::new(before.into()) });
    let ours = sessions(store);
    let mut session = block_on(ours.load(&slot("s1"), None)).unwrap();
    assert!(block_on(ours.accept(&mut session, &input("asked"))).unwrap());
    assert!(block_on(ours.accept(&mut session, &input("joined"))).unwrap());
    let said = ["asked", "joined"].map(|text| message(Role::User, text));
    let said = said.into_iter().chain([message(Role::Assistant, "answer")]).collect();
    let answered = turn("t", EntryKind::Turn, input("asked"), said);
    let answered = Turn { joined: vec![input("joined").again()], ..answered };
    let error = block_on(ours.finish(&mut session, &answered)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Superseded);
    let records = block_on(place.list("", Page::default())).unwrap();
    let log: Vec<_> = records.iter().filter(|(key, _)| key.contains("/log/")).collect();
    assert_eq!(log.len(), 3, "what was recovered, twice, and the answer beside it");
    for text in ["asked", "joined", "answer"] {
        let id = format!("id of {text}");
        let has =
            |record: &&&(String, Record)| String::from_utf8_lossy(&record.1.value).contains(&id);
        assert_eq!(log.iter().filter(has).count(), 1, "{text} is in the log once");
    }
}
