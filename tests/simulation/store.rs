//! A simulated store on its own machine: slow, failing, silent, sometimes late; and with deliberate bugs for tests of the checker.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use lockgate::store::backend::chunks::above;
use lockgate::store::backend::memory_store::MemoryStore;

use crate::world::{Group, World, oneshot};

/// A deliberate bug of a port, for tests of the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    Nothing,
    IgnoresExpect,
    IgnoresExpectAndLocks,
    LosesAcknowledged,
    AppliesHalf,
    ReadsStaleHeads,
    DropsRemoves,
    DropsPrefixRemoves,
    PutsBeforeRemoves,
    ListsTooLittle,
    OneRevision,
    LosesIndexLines,
    KeepsLocksOfTheDead,
}

/// How many of a thousand operations have each fault.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    pub lag: u64,
    pub fails: u64,
    pub applies_and_fails: u64,
    pub hangs: u64,
    /// Only for a store with a journal.
    pub tears: u64,
    pub delivers_twice: u64,
}

/// The kind of store.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The nodes that may write to it.
    pub shared: Shared,
    /// The largest value that it accepts.
    pub cell: Option<usize>,
    /// Whether a batch is written to a journal first. Complete batches in the journal are replayed after a crash.
    pub has_journal: bool,
}

/// A temporary condition of the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Well,
    /// All operations fail.
    Down,
    /// All writes fail, as on a full disk.
    Full,
    /// Another page blocks it.
    Blocked,
}

/// The records that a deletion removed.
pub struct Grave {
    pub tick: u64,
    pub prefix: String,
    pub values: Vec<Vec<u8>>,
}

/// The machine of the store. It never dies and loses nothing.
pub struct Server {
    pub world: Rc<World>,
    pub rates: Cell<Rates>,
    pub broken: Broken,
    pub kind: Kind,
    pub health: Cell<Health>,
    pub graves: RefCell<Vec<Grave>>,
    /// Every key under which an input was ever stored.
    pub inputs: RefCell<HashSet<String>>,
    /// The key and the words of every part of an answer that was ever stored, and when.
    pub pieces: RefCell<Vec<(String, String, u64)>>,
    /// The keys of the parts of answers that were stored before the call that logged their input read them.
    pub known: RefCell<HashSet<String>>,
    /// When the parts of an answer were first listed since the last change of their session, by their prefix.
    listed: RefCell<HashMap<String, u64>>,
    inner: Rc<MemoryStore>,
    /// The complete batch in the journal that was not replayed yet.
    torn: RefCell<Option<Batch>>,
    /// How many commits were applied.
    n_applied: Cell<u64>,
    replaced: RefCell<HashMap<String, Record>>,
    refused: RefCell<HashSet<String>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Fails,
    AppliesAndFails,
    HangsAndLoses,
    HangsAndApplies,
    Tears,
    DeliversTwice,
}

impl Server {
    pub fn new(world: &Rc<World>, rates: Rates, kind: Kind, broken: Broken) -> Rc<Server> {
        Rc::new(Server {
            world: Rc::clone(world),
            rates: Cell::new(rates),
            broken,
            kind,
            health: Cell::new(Health::Well),
            graves: RefCell::default(),
            inputs: RefCell::default(),
            pieces: RefCell::default(),
            known: RefCell::default(),
            listed: RefCell::default(),
            inner: Rc::default(),
            torn: RefCell::default(),
            n_applied: Cell::new(0),
            replaced: RefCell::default(),
            refused: RefCell::default(),
        })
    }

    /// All records, with chunks joined to whole values.
    pub fn dump(&self) -> Result<Vec<(String, Record)>> {
        self.replay();
        self.whole("")
    }

    /// The records below a prefix, with chunks joined to whole values.
    fn whole(&self, prefix: &str) -> Result<Vec<(String, Record)>> {
        let cells = Cells { inner: Rc::clone(&self.inner), kind: self.kind };
        now(above(Rc::new(cells)).list(prefix, Page::default()))
    }

    /// Completes a batch that a crash has interrupted, before anything is read.
    fn replay(&self) {
        if let Some(batch) = self.torn.take() {
            self.record(&batch);
        }
    }

    /// The store dies during a commit: half of the batch is applied and the journal has all of it, or nothing is written.
    fn tear(&self, batch: &Batch) {
        let checks = Batch { expect: batch.expect.clone(), ..Batch::default() };
        let is_whole = self.world.chance.below(2) == 0;
        if !is_whole || now(self.inner.commit(&checks)).unwrap() == Committed::Conflict {
            return;
        }
        let half = batch.put.iter().take(batch.put.len() / 2).cloned().collect();
        let half = Batch { put: half, revision: batch.revision.clone(), ..Batch::default() };
        now(self.inner.commit(&half)).unwrap();
        *self.torn.borrow_mut() = Some(Batch { expect: None, ..batch.clone() });
    }

    /// The error of an operation while the store has a temporary condition.
    fn refusal(&self, is_commit: bool) -> Option<Error> {
        let (kind, name) = match self.health.get() {
            Health::Down => (ErrorKind::StoreUnavailable, "store outage"),
            Health::Full if is_commit => (ErrorKind::StoreQuota, "store full"),
            Health::Blocked if is_commit => (ErrorKind::StoreBlocked, "store blocked"),
            _ => return None,
        };
        self.world.tally.count(name);
        Some(Error::new(kind, "the simulation says so"))
    }

    fn fault(&self) -> Fault {
        let rates = self.rates.get();
        let chance = &self.world.chance;
        let (fault, name) = if self.kind.has_journal && chance.permille(rates.tears) {
            (Fault::Tears, "torn write")
        } else if chance.permille(rates.delivers_twice) {
            (Fault::DeliversTwice, "duplicate delivery")
        } else if chance.permille(rates.fails) {
            (Fault::Fails, "store error")
        } else if chance.permille(rates.applies_and_fails) {
            (Fault::AppliesAndFails, "store applied error")
        } else if chance.permille(rates.hangs) {
            match chance.below(2) {
                0 => (Fault::HangsAndLoses, "store hang"),
                _ => (Fault::HangsAndApplies, "store late commit"),
            }
        } else {
            return Fault::None;
        };
        self.world.tally.count(name);
        fault
    }

    /// The fault of a read.
    fn fault_of_reading(&self) -> Fault {
        let rates = Rates { tears: 0, delivers_twice: 0, ..self.rates.get() };
        let all = self.rates.replace(rates);
        let fault = self.fault();
        self.rates.set(all);
        fault
    }

    async fn lag(&self) {
        if self.world.chance.permille(self.rates.get().lag) {
            self.world.tally.count("store delay");
            self.world.lag().await;
        }
    }

    async fn read<T>(&self, read: impl FnOnce(&MemoryStore) -> T) -> Result<T> {
        self.lag().await;
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        self.replay();
        let fault = self.fault_of_reading();
        let found = read(&self.inner);
        let n_applied = self.n_applied.get();
        self.lag().await;
        if self.n_applied.get() > n_applied {
            self.world.tally.count("stale read");
        }
        match fault {
            Fault::None => Ok(found),
            Fault::HangsAndLoses | Fault::HangsAndApplies => pending().await,
            _ => Err(unavailable()),
        }
    }

    fn apply(&self, batch: &Batch) -> Committed {
        self.replay();
        let mut batch = batch.clone();
        let some = self.world.chance.below(8) == 0;
        match self.broken {
            Broken::IgnoresExpect | Broken::IgnoresExpectAndLocks => batch.expect = None,
            Broken::LosesAcknowledged if some => return Committed::Done,
            Broken::AppliesHalf if some => batch.put.truncate(batch.put.len() / 2),
            Broken::DropsRemoves => batch.remove.clear(),
            Broken::DropsPrefixRemoves => batch.remove_prefix.clear(),
            Broken::PutsBeforeRemoves => self.put_first(&mut batch),
            Broken::LosesIndexLines if some => {
                batch.put.retain(|(key, _)| !key.contains("/index/"))
            }
            Broken::OneRevision => {
                batch.revision = "1".to_owned();
                let expected = batch.expect.as_mut().map(|(_, revision)| revision);
                expected.into_iter().flatten().for_each(|revision| *revision = "1".to_owned());
            }
            _ => {}
        }
        self.record(&batch)
    }

    /// Applies the batch, and records what the checker needs.
    fn record(&self, batch: &Batch) -> Committed {
        let below = |prefix: &String| (prefix.clone(), self.whole(prefix).unwrap_or_default());
        let buried: Vec<_> = batch.remove_prefix.iter().map(below).collect();
        let heads = batch.put.iter().map(|(key, _)| key).filter(|key| key.ends_with("/head"));
        let heads: Vec<String> = heads.cloned().collect();
        let before = now(self.inner.get(&heads)).unwrap();
        // Values that are split into chunks are not inspected.
        let readable = batch.put.iter().filter(|_| self.kind.cell.is_none());
        let entry = readable.clone().find(|(key, _)| key.contains("/log/"));
        let entry = entry.map(|(key, value)| (key.rsplit('.').next().unwrap().to_owned(), value));
        if now(self.inner.commit(batch)).unwrap() == Committed::Conflict {
            let is_piece = batch.put.iter().any(|(key, _)| key.contains("/partial/"));
            self.world.tally.count(if is_piece { "late checkpoint" } else { "conflict" });
            self.refused.borrow_mut().extend(entry.map(|(id, _)| id));
            return Committed::Conflict;
        }
        self.n_applied.set(self.n_applied.get() + 1);
        let is_too_large =
            |it: &(String, Vec<u8>)| self.kind.cell.is_some_and(|most| it.1.len() > most);
        assert!(!batch.put.iter().any(is_too_large), "a value is larger than the store takes");
        let tick = self.world.tick();
        for (prefix, records) in buried {
            let values = records.into_iter().map(|(_, record)| record.value).collect();
            self.graves.borrow_mut().push(Grave { tick, prefix, values });
        }
        let is_input = |key: &&String| key.contains("/input/") && !key.contains("--");
        let inputs = batch.put.iter().map(|(key, _)| key).filter(is_input);
        self.inputs.borrow_mut().extend(inputs.cloned());
        for (key, value) in readable.filter(|(key, _)| key.contains("/partial/")) {
            self.world.tally.count("checkpoint");
            let words = words_of(value).into_iter().map(|words| (key.clone(), words, tick));
            self.pieces.borrow_mut().extend(words);
        }
        heads.iter().for_each(|head| self.note_known(head, batch));
        let replaced = heads.into_iter().zip(before).filter_map(|(key, old)| Some((key, old?)));
        self.replaced.borrow_mut().extend(replaced);
        if let Some((id, value)) = entry {
            let has = |what: &str| String::from_utf8_lossy(value).contains(what);
            if has(r#""kind":"step""#) {
                self.world.tally.count("step");
            } else if has(r#""kind":"recovered""#) {
                self.world.tally.count("recovered");
            } else if self.refused.borrow().contains(&id) {
                let head = batch.put.iter().find(|(key, _)| key.ends_with("/head"));
                let leaf = head.is_some_and(|(_, head)| {
                    let head: serde_json::Value = serde_json::from_slice(head).unwrap();
                    head["leaf"].as_str().is_some_and(|leaf| leaf.ends_with(&id))
                });
                self.world.tally.count(if leaf { "rebased" } else { "set aside" });
            }
        }
        Committed::Done
    }

    /// Notes which parts of answers a batch that changes this head must have known. Whoever logs an input has read its parts
    /// since the last change of the head, so at the earliest when they were first listed since then.
    fn note_known(&self, head: &str, batch: &Batch) {
        let slot = head.trim_end_matches("head");
        self.listed.borrow_mut().retain(|prefix, first| {
            let Some(call) = prefix.strip_prefix(slot) else { return true };
            let input =
                format!("{slot}{}", call.trim_end_matches('/').replace("partial/", "input/"));
            if batch.remove.contains(&input) {
                let pieces = self.pieces.borrow();
                let earlier =
                    pieces.iter().filter(|it| it.0.starts_with(&*prefix) && it.2 < *first);
                self.known.borrow_mut().extend(earlier.map(|(key, ..)| key.clone()));
            }
            false
        });
    }

    /// Applies the puts, and then the removals.
    fn put_first(&self, batch: &mut Batch) {
        let gone = |key: &String| {
            batch.remove.contains(key) || batch.remove_prefix.iter().any(|it| key.starts_with(it))
        };
        let stays = batch.put.iter().filter(|(key, _)| !gone(key)).cloned().collect();
        batch.put = stays;
    }
}

/// The answers of the model in a stored part of an answer: "answer", a number, and a second number behind a dot.
fn words_of(piece: &[u8]) -> Vec<String> {
    let piece = String::from_utf8_lossy(piece);
    let is_word = |it: &&str| it.starts_with(|first: char| first.is_ascii_digit());
    let answers = piece.split("answer ").skip(1).filter(is_word);
    let number = |it: &str| it.split([' ', '"']).next().unwrap().to_owned();
    answers.map(|it| format!("answer {} ", number(it))).collect()
}

/// The store port of a node.
pub struct SimStore(pub Rc<Server>);

impl Store for SimStore {
    fn capabilities(&self) -> Capabilities {
        self.0.kind.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            let mut found = self.0.read(|inner| now(inner.get(keys))).await??;
            if self.0.broken == Broken::ReadsStaleHeads && self.0.world.chance.below(4) == 0 {
                for (key, record) in keys.iter().zip(&mut found) {
                    *record = self.0.replaced.borrow().get(key).cloned().or(record.take());
                }
            }
            Ok(found)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            let list = |inner: &MemoryStore| {
                if prefix.contains("/partial/") {
                    let tick = self.0.world.tick();
                    self.0.listed.borrow_mut().entry(prefix.to_owned()).or_insert(tick);
                }
                now(inner.list(prefix, page))
            };
            let mut found = self.0.read(list).await??;
            if self.0.broken == Broken::ListsTooLittle && self.0.world.chance.below(8) == 0 {
                found.pop();
            }
            Ok(found)
        })
    }

    /// The batch arrives once it is sent: neither a crash nor a deadline of the node can cancel it.
    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            let (tell, told) = oneshot();
            let (server, batch) = (Rc::clone(&self.0), batch.clone());
            self.0.world.spawn(Group::Server, async move {
                server.lag().await;
                if let Some(refusal) = server.refusal(true) {
                    return tell.send(Err(refusal));
                }
                match server.fault() {
                    Fault::None => {
                        let committed = server.apply(&batch);
                        server.lag().await;
                        tell.send(Ok(committed));
                    }
                    Fault::Fails => tell.send(Err(unavailable())),
                    Fault::AppliesAndFails => {
                        server.apply(&batch);
                        server.lag().await;
                        tell.send(Err(unavailable()));
                    }
                    Fault::HangsAndLoses => {}
                    Fault::HangsAndApplies => {
                        server.world.sleep(server.world.chance.below(25_000)).await;
                        server.apply(&batch);
                    }
                    Fault::Tears => {
                        server.replay();
                        server.tear(&batch);
                        tell.send(Err(unavailable()));
                    }
                    Fault::DeliversTwice => {
                        let committed = server.apply(&batch);
                        tell.send(Ok(committed));
                        server.world.sleep(server.world.chance.below(25_000)).await;
                        server.apply(&batch);
                    }
                }
            });
            match told.wait().await {
                Some(answer) => answer,
                None => pending().await,
            }
        })
    }
}

impl Kind {
    fn capabilities(self) -> Capabilities {
        Capabilities { max_value_bytes: self.cell, ..Capabilities::whole(self.shared) }
    }
}

/// The raw records, for the code that joins chunks.
struct Cells {
    inner: Rc<MemoryStore>,
    kind: Kind,
}

impl Store for Cells {
    fn capabilities(&self) -> Capabilities {
        self.kind.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        self.inner.commit(batch)
    }
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "the simulation says so")
}

/// The value of a future that is ready at once.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits"),
    }
}
