//! A memory store with exactly one flaw, to show that each store rule can fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use lockgate::store::backend::memory_store::MemoryStore;

/// Every way in which a store here may be wrong.
pub const FLAWS: &[&str] = &[
    "reads bytes as text",
    "cuts values",
    "makes up what is absent",
    "reads in its own order",
    "reads every key once",
    "reads at most 128 keys",
    "forgets revisions",
    "stamps only what is new",
    "keeps the first value",
    "takes empty for absent",
    "cuts keys",
    "takes keys that look alike for one",
    "lists backwards",
    "sorts by parts",
    "lists too much",
    "lists without values",
    "takes prefixes for patterns",
    "lists one user only",
    "lists from the start",
    "lists the key it goes on after",
    "ignores limits",
    "lists at most 1,000 records",
    "does not know lists of keys only",
    "never removes",
    "lists what was removed",
    "refuses to remove what is absent",
    "never removes prefixes",
    "removes too much",
    "removes at most 128 keys of a prefix",
    "removes last",
    "puts at most 128 records",
    "refuses to replace",
    "ignores expectations",
    "refuses what it finds",
    "removes in spite of a conflict",
    "puts in spite of a conflict",
    "compares the beginnings of revisions",
    "creates what it should find",
    "expects what was removed",
    "expects only what it puts",
    "removes before it compares",
    "compares long before it writes",
    "takes one commit at a time",
    "remembers what it has read",
];

/// A store over a shared memory store; without a flaw it is correct.
pub struct Flawed {
    place: Rc<MemoryStore>,
    flaw: &'static str,
    busy: Cell<bool>,
    read: RefCell<BTreeMap<String, Option<Record>>>,
    removed: RefCell<BTreeMap<String, Record>>,
}

impl Flawed {
    pub fn new(place: &Rc<MemoryStore>, flaw: &'static str) -> Flawed {
        Flawed {
            place: Rc::clone(place),
            flaw,
            busy: Cell::default(),
            read: RefCell::default(),
            removed: RefCell::default(),
        }
    }

    fn is(&self, flaw: &str) -> bool {
        self.flaw == flaw
    }

    /// The key as this store understands it.
    fn key(&self, key: &str) -> String {
        match self.flaw {
            "cuts keys" => key.chars().take(255).collect(),
            "takes keys that look alike for one" => {
                let mut parts = key.split('-');
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |key, part| key + part.get(2..).unwrap_or_default())
            }
            _ => key.to_owned(),
        }
    }

    fn spoilt(&self, mut record: Record) -> Record {
        match self.flaw {
            "reads bytes as text" => {
                record.value = String::from_utf8_lossy(&record.value).into_owned().into_bytes();
            }
            "cuts values" => record.value.truncate(99),
            "forgets revisions" => record.revision.clear(),
            _ => {}
        }
        record
    }

    async fn found(&self, key: &str) -> Result<Option<Record>> {
        Ok(self.place.get(&[key.to_owned()]).await?.pop().flatten())
    }

    async fn keys_below(&self, prefix: &str) -> Result<Vec<String>> {
        let listed = self.place.list(prefix, Page::default()).await?;
        Ok(listed.into_iter().map(|(key, _)| key).collect())
    }
}

impl Store for Flawed {
    fn capabilities(&self) -> Capabilities {
        Capabilities { shared: Shared::Host, ..self.place.capabilities() }
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            let own: Vec<String> = keys.iter().map(|key| self.key(key)).collect();
            let mut found = self.place.get(&own).await?;
            for (index, place) in found.iter_mut().enumerate() {
                let twice = keys.iter().position(|key| *key == keys[index]) != Some(index);
                let is_lost = match self.flaw {
                    "reads every key once" => twice,
                    "reads at most 128 keys" => index >= 128,
                    "takes empty for absent" => {
                        place.as_ref().is_some_and(|it| it.value.is_empty())
                    }
                    _ => false,
                };
                *place = if is_lost { None } else { place.take().map(|it| self.spoilt(it)) };
                if self.is("makes up what is absent") && place.is_none() {
                    *place = Some(Record { value: Vec::new(), revision: String::new() });
                }
                if self.is("remembers what it has read") {
                    let mut read = self.read.borrow_mut();
                    *place = read.entry(keys[index].clone()).or_insert(place.take()).clone();
                }
            }
            if self.is("reads in its own order") {
                found.reverse();
            }
            Ok(found)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            let all = self.place.list("", Page::default()).await?;
            let mut listed: Vec<_> = all
                .into_iter()
                .chain(
                    self.is("lists what was removed")
                        .then(|| self.removed.borrow().clone())
                        .into_iter()
                        .flatten(),
                )
                .filter(|(key, _)| self.begins(key, prefix))
                .filter(|(key, _)| match (&page.after, self.flaw) {
                    (None, _) | (_, "lists from the start") => true,
                    (Some(after), "lists the key it goes on after") => key >= after,
                    (Some(after), _) => key > after,
                })
                .map(|(key, record)| (key, self.spoilt(record)))
                .collect();
            match self.flaw {
                "lists backwards" => listed.reverse(),
                "sorts by parts" => listed
                    .sort_by_key(|(key, _)| key.split('/').map(str::to_owned).collect::<Vec<_>>()),
                "lists without values" => listed.iter_mut().for_each(|it| it.1.value.clear()),
                "lists at most 1,000 records" => listed.truncate(1_000),
                "does not know lists of keys only" if page.keys_only => listed.clear(),
                "takes empty for absent" => listed.retain(|(_, it)| !it.value.is_empty()),
                "lists one user only" => {
                    let user = |key: &str| key.split('/').take(2).collect::<Vec<_>>().join("/");
                    let first = listed.first().map(|(key, _)| user(key));
                    listed.retain(|(key, _)| Some(user(key)) == first);
                }
                _ => {}
            }
            let limit = if self.is("ignores limits") { None } else { page.limit };
            listed.truncate(limit.unwrap_or(usize::MAX));
            Ok(listed)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            if self.is("takes one commit at a time") {
                if self.busy.replace(true) {
                    return Ok(Committed::Conflict);
                }
                turn().await;
                self.busy.set(false);
            }
            let mut batch = batch.clone();
            for (key, _) in &mut batch.put {
                *key = self.key(key);
            }
            self.misremove(&mut batch).await?;
            if !self.miscompare(&mut batch).await? {
                return Ok(Committed::Conflict);
            }
            self.misput(&mut batch).await?;
            self.apply(batch).await
        })
    }
}

impl Flawed {
    fn begins(&self, key: &str, prefix: &str) -> bool {
        match self.flaw {
            "lists too much" => key.starts_with(prefix.trim_end_matches('/')),
            "takes prefixes for patterns" => {
                let alike = |(one, other)| one == other || one == b'.';
                prefix.len() <= key.len() && prefix.bytes().zip(key.bytes()).all(alike)
            }
            _ => key.starts_with(prefix),
        }
    }

    /// Removes keys, with the flaw.
    async fn misremove(&self, batch: &mut Batch) -> Result<()> {
        for key in &batch.remove {
            if let Some(record) = self.found(key).await? {
                self.removed.borrow_mut().insert(key.clone(), record);
            }
        }
        match self.flaw {
            "never removes" => batch.remove.clear(),
            "never removes prefixes" => batch.remove_prefix.clear(),
            "removes too much" => {
                for prefix in &mut batch.remove_prefix {
                    *prefix = prefix.trim_end_matches('/').to_owned();
                }
            }
            "removes at most 128 keys of a prefix" => {
                for prefix in std::mem::take(&mut batch.remove_prefix) {
                    batch.remove.extend(self.keys_below(&prefix).await?.into_iter().take(128));
                }
            }
            "removes before it compares" => {
                let removes = Batch { expect: None, put: Vec::new(), ..batch.clone() };
                self.place.commit(&removes).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the expected revisions, with the flaw; false is a conflict.
    async fn miscompare(&self, batch: &mut Batch) -> Result<bool> {
        if self.is("refuses to remove what is absent") {
            for key in &batch.remove {
                if self.found(key).await?.is_none() {
                    return Ok(false);
                }
            }
        }
        let Some((key, expected)) = batch.expect.clone() else {
            let is_there = match batch.put.first() {
                Some((key, _)) => self.found(key).await?.is_some(),
                None => false,
            };
            return Ok(!(self.is("refuses to replace") && is_there));
        };
        let found = self.found(&key).await?.map(|record| record.revision);
        let (is_absent, wants_one) = (found.is_none(), expected.is_some());
        let found = found.unwrap_or_default();
        let looks_right = match self.flaw {
            "ignores expectations" => true,
            "refuses what it finds" if wants_one => return Ok(false),
            "creates what it should find" => is_absent,
            "expects only what it puts" => !batch.put.iter().any(|(put, _)| *put == key),
            "compares the beginnings of revisions" => {
                expected.as_ref().is_some_and(|it| !is_absent && found.starts_with(it.as_str()))
            }
            "expects what was removed" => {
                let removed = self.removed.borrow().get(&key).map(|it| it.revision.clone());
                is_absent && wants_one && removed == expected
            }
            "remembers what it has read" => {
                let read = self.read.borrow().get(&key).cloned().flatten();
                read.is_some_and(|it| Some(it.revision) == expected)
            }
            "compares long before it writes" => {
                turn().await;
                expected.as_ref() == (!is_absent).then_some(&found)
            }
            _ => false,
        };
        if looks_right {
            batch.expect = None;
        }
        Ok(true)
    }

    /// Puts records, with the flaw.
    async fn misput(&self, batch: &mut Batch) -> Result<()> {
        if self.is("puts at most 128 records") {
            batch.put.truncate(128);
        }
        if self.is("keeps the first value") {
            for (key, value) in &mut batch.put {
                if let Some(record) = self.found(key).await? {
                    *value = record.value;
                }
            }
        }
        Ok(())
    }

    async fn apply(&self, batch: Batch) -> Result<Committed> {
        let mut old = Vec::new();
        for (key, value) in &batch.put {
            if let Some(record) = self.found(key).await? {
                let put = vec![(key.clone(), value.clone())];
                old.push(Batch { revision: record.revision, put, ..Batch::default() });
            }
        }
        let removes = Batch { expect: None, put: Vec::new(), ..batch.clone() };
        let puts =
            Batch { revision: batch.revision.clone(), put: batch.put.clone(), ..Batch::default() };
        let outcome = self.place.commit(&batch).await?;
        let then = match (self.flaw, outcome) {
            ("removes last", Committed::Done) => vec![removes],
            ("stamps only what is new", Committed::Done) => old,
            ("removes in spite of a conflict", Committed::Conflict) => vec![removes],
            ("puts in spite of a conflict", Committed::Conflict) => vec![puts],
            _ => Vec::new(),
        };
        for batch in &then {
            self.place.commit(batch).await?;
        }
        Ok(outcome)
    }
}

/// Lets other tasks run.
async fn turn() {
    let mut been = false;
    poll_fn(|context| {
        if std::mem::replace(&mut been, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
