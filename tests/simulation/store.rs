//! A store on a machine of its own: slow, failing, silent, sometimes late; and, for the teeth, broken.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use lockgate::store::memory::MemoryStore;

use crate::world::{Group, World, oneshot};

/// What is wrong with a port, for tests of the checker.
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

/// How often things go wrong, in a thousand operations.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    pub lag: u64,
    pub fails: u64,
    pub applies_and_fails: u64,
    pub hangs: u64,
}

/// What a deletion took away.
pub struct Grave {
    pub tick: u64,
    pub prefix: String,
    pub values: Vec<Vec<u8>>,
}

/// The store's machine; it never dies and forgets nothing.
pub struct Server {
    pub world: Rc<World>,
    pub rates: Cell<Rates>,
    pub broken: Broken,
    /// Who may write to it, as it says itself.
    pub shared: Cell<Shared>,
    pub graves: RefCell<Vec<Grave>>,
    /// Every key under which an input was ever stored.
    pub inputs: RefCell<HashSet<String>>,
    inner: MemoryStore,
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
}

impl Server {
    pub fn new(world: &Rc<World>, rates: Rates, broken: Broken) -> Rc<Server> {
        Rc::new(Server {
            world: Rc::clone(world),
            rates: Cell::new(rates),
            broken,
            shared: Cell::new(Shared::Origin),
            graves: RefCell::default(),
            inputs: RefCell::default(),
            inner: MemoryStore::new(),
            replaced: RefCell::default(),
            refused: RefCell::default(),
        })
    }

    /// Everything that is stored.
    pub fn dump(&self) -> Vec<(String, Record)> {
        now(self.inner.list("", Page::default())).unwrap()
    }

    fn fault(&self) -> Fault {
        let rates = self.rates.get();
        let chance = &self.world.chance;
        let (fault, name) = if chance.permille(rates.fails) {
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

    async fn lag(&self) {
        if self.world.chance.permille(self.rates.get().lag) {
            self.world.tally.count("store delay");
            self.world.lag().await;
        }
    }

    async fn read<T>(&self, read: impl FnOnce(&MemoryStore) -> T) -> Result<T> {
        self.lag().await;
        let fault = self.fault();
        let found = read(&self.inner);
        self.lag().await;
        match fault {
            Fault::None => Ok(found),
            Fault::Fails | Fault::AppliesAndFails => Err(unavailable()),
            Fault::HangsAndLoses | Fault::HangsAndApplies => pending().await,
        }
    }

    fn apply(&self, batch: &Batch) -> Committed {
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

    /// Applies the batch, and keeps what the checker wants to know of it.
    fn record(&self, batch: &Batch) -> Committed {
        let below = |prefix: &String| now(self.inner.list(prefix, Page::default())).unwrap();
        let buried: Vec<_> = batch.remove_prefix.iter().map(|it| (it.clone(), below(it))).collect();
        let heads = batch.put.iter().map(|(key, _)| key).filter(|key| key.ends_with("/head"));
        let heads: Vec<String> = heads.cloned().collect();
        let before = now(self.inner.get(&heads)).unwrap();
        let entry = batch.put.iter().find(|(key, _)| key.contains("/log/"));
        let entry = entry.map(|(key, value)| (key.rsplit('.').next().unwrap().to_owned(), value));
        if now(self.inner.commit(batch)).unwrap() == Committed::Conflict {
            self.world.tally.count("conflict");
            self.refused.borrow_mut().extend(entry.map(|(id, _)| id));
            return Committed::Conflict;
        }
        let tick = self.world.tick();
        for (prefix, records) in buried {
            let values = records.into_iter().map(|(_, record)| record.value).collect();
            self.graves.borrow_mut().push(Grave { tick, prefix, values });
        }
        let inputs = batch.put.iter().map(|(key, _)| key).filter(|key| key.contains("/input/"));
        self.inputs.borrow_mut().extend(inputs.cloned());
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

    /// Puts, and takes the removes after that.
    fn put_first(&self, batch: &mut Batch) {
        let gone = |key: &String| {
            batch.remove.contains(key) || batch.remove_prefix.iter().any(|it| key.starts_with(it))
        };
        let stays = batch.put.iter().filter(|(key, _)| !gone(key)).cloned().collect();
        batch.put = stays;
    }
}

/// A node's way to the server.
pub struct SimStore(pub Rc<Server>);

impl Store for SimStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::whole(self.0.shared.get())
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
            let mut found = self.0.read(|inner| now(inner.list(prefix, page))).await??;
            if self.0.broken == Broken::ListsTooLittle && self.0.world.chance.below(8) == 0 {
                found.pop();
            }
            Ok(found)
        })
    }

    /// The batch is on its way as soon as it is sent: neither a crash nor a deadline calls it back.
    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            let (tell, told) = oneshot();
            let (server, batch) = (Rc::clone(&self.0), batch.clone());
            self.0.world.spawn(Group::Server, async move {
                server.lag().await;
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
                }
            });
            match told.wait().await {
                Some(answer) => answer,
                None => pending().await,
            }
        })
    }
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "the simulation says so")
}

/// The value of a future that does not wait.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits"),
    }
}
