//! Records of a store, with a deadline on every operation, and commits whose outcome is known.

use std::cell::OnceCell;
use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::json;
use crate::mutants;
use crate::port::{Batch, Committed, Host, Page, Record, Store};
use crate::store::entry::{Entry, EntryRef};
use crate::store::head::Place;
use crate::store::id;
use crate::store::key::SlotKeys;
use crate::store::lease::Node;
use crate::store::session::Mint;
use crate::store::view::{self, Entries, Stretch};

/// Records asked for at a time.
const PAGE: usize = 500;

/// A store and the patience to wait for it.
pub(super) struct Records {
    pub(super) store: Rc<dyn Store>,
    pub(super) host: Rc<dyn Host>,
    pub(super) timeout_ms: u64,
    /// Our name among the nodes that share the store; none where nobody does.
    pub(super) node: Option<OnceCell<String>>,
}

/// What came of a commit.
pub(super) enum Landing {
    /// It is applied.
    Done,
    /// It was applied, and somebody has built upon it since.
    Overtaken,
    /// Somebody else was first; nothing is applied.
    Conflict,
}

impl Records {
    /// Applies a batch; an unknown outcome is settled by reading the head.
    pub(super) async fn commit(&self, batch: &Batch) -> Result<Landing> {
        match self.within("a commit", self.store.commit(batch)).await {
            Ok(Committed::Done) => Ok(Landing::Done),
            Ok(Committed::Conflict) => Ok(Landing::Conflict),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::StoreTimeout | ErrorKind::StoreUnavailable
                ) =>
            {
                self.settle(batch, error).await
            }
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, batch: &Batch, error: Error) -> Result<Landing> {
        if mutants::is("hopeful-commit") {
            return Ok(Landing::Done);
        }
        if mutants::is("hopeless-commit") {
            return Ok(Landing::Conflict);
        }
        let Some((head, expected)) = &batch.expect else { return Err(error) };
        let Ok(found) = self.get(head.clone()).await else { return Err(error) };
        let mut found = found.map(|record| record.revision);
        if found == *expected {
            match self.within("a commit", self.store.commit(batch)).await {
                Ok(Committed::Done) => return Ok(Landing::Done),
                // The first try may have arrived after all, between the reading and this one.
                Ok(Committed::Conflict) => {
                    found = self.get(head.clone()).await?.map(|record| record.revision);
                }
                Err(_) => return Err(error),
            }
        }
        if found.as_ref() == Some(&batch.revision) {
            return Ok(Landing::Done);
        }
        // It may have been applied and built upon: then the record that only we write is there.
        let Some((own, _)) = batch.put.first() else { return Err(error) };
        let own = self.get(own.clone()).await?;
        let applied = own.is_some_and(|record| record.revision == batch.revision);
        Ok(if applied { Landing::Overtaken } else { Landing::Conflict })
    }

    /// The record under a key.
    pub(super) async fn get(&self, key: String) -> Result<Option<Record>> {
        let keys = [key];
        let mut records = self.within("a read", self.store.get(&keys)).await?;
        Ok(records.pop().flatten())
    }

    /// The record under each key, in their order.
    pub(super) async fn get_all(&self, keys: &[String]) -> Result<Vec<Option<Record>>> {
        self.within("a read", self.store.get(keys)).await
    }

    /// One page of a listing.
    pub(super) async fn list(&self, prefix: &str, page: Page) -> Result<Vec<(String, Record)>> {
        self.within("a listing", self.store.list(prefix, page)).await
    }

    async fn within<T>(&self, what: &str, work: Local<'_, Result<T>>) -> Result<T> {
        match race(work, self.host.sleep(self.timeout_ms)).await {
            Either::First(done) => done,
            Either::Second(()) => {
                let message =
                    format!("the store did not answer {what} within {} ms", self.timeout_ms);
                Err(Error::new(ErrorKind::StoreTimeout, message)
                    .hint("try again; raise timeouts.store if it is slow"))
            }
        }
    }

    /// What a span holds; `None` if an entry is missing.
    pub(super) async fn span(
        &self,
        keys: &SlotKeys,
        from: &Place,
        to: &Place,
    ) -> Result<Option<Stretch>> {
        let entries = self.entries(keys, from.0.seq, to.0.seq).await?;
        Ok(view::span(&entries, from, to))
    }

    /// The entries of these numbers, on any path.
    pub(super) async fn entries(&self, keys: &SlotKeys, first: u64, last: u64) -> Result<Entries> {
        let prefix = keys.log();
        let mut after = Some(keys.log_before(first));
        let mut entries = Entries::new();
        while let Some(start) = after.take() {
            let page = Page {
                after: Some(start),
                limit: Some(PAGE.min((last.saturating_sub(first) + 8) as usize)),
                keys_only: false,
            };
            let asked = page.limit;
            let records = self.list(&prefix, page).await?;
            let full = asked == Some(records.len());
            for (key, record) in records {
                let name = Value::String(key.strip_prefix(&prefix).unwrap_or_default().to_owned());
                let name = EntryRef::from_json(&name)
                    .map_err(|bad| bad.into_error(ErrorKind::StoreCorrupt, "a log key"))?;
                after = (full && name.seq <= last).then_some(key);
                let entry = read(&record, Entry::from_json, "").map_err(|error| {
                    error
                        .within(&format!("the entry {name} of the log cannot be read"))
                        .hint("its bytes are kept; repairSession goes on without it")
                })?;
                entries.insert(name, entry);
            }
        }
        Ok(entries)
    }

    /// The chance and the time for one change.
    pub(super) fn change<T>(&self, make: impl FnOnce(Mint<'_>) -> T) -> T {
        let word = || id::nonce(&*self.host);
        self.as_node(|node| make(Mint { word: &word, now_ms: self.host.now_ms(), node }))
    }

    /// Who we are now, where machines share the store.
    pub(super) fn as_node<T>(&self, act: impl FnOnce(Option<Node<'_>>) -> T) -> T {
        let is_gone = |node: &str| self.host.is_gone(node);
        // Named at the first use: no chance is asked for before the first call.
        let name = || Some(self.host.node()).filter(|it| !it.is_empty());
        let name = || name().unwrap_or_else(|| id::mint(&*self.host));
        let named = self.node.as_ref().map(|cell| cell.get_or_init(name).as_str());
        let now_ms = self.host.now_ms();
        act(named.map(|name| Node { name, now_ms, is_gone: &is_gone }))
    }
}

/// Reads a record; `what` names it in the error.
pub(super) fn read<T>(record: &Record, reader: json::Reader<T>, what: &str) -> Result<T> {
    let value = json::parse(&record.value, what)?;
    reader(&value).map_err(|misread| misread.into_error(ErrorKind::StoreCorrupt, what))
}
