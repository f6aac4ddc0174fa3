//! Reads and commits records. Every operation has a deadline. If the outcome of a commit is unknown, it is found out.

use std::cell::OnceCell;
use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::json::{self, Misread};
use crate::port::{Batch, Committed, Host, Page, Record, Shared, Store};
use crate::seams;
use crate::store::format::entry::Entry;
use crate::store::format::lease::Node;
use crate::store::format::view::MessagePlace;
use crate::store::host_values::HostValues;
use crate::store::id;
use crate::store::keys::EntryRef;
use crate::store::keys::SlotKeys;
use crate::store::log::{self, Entries, SpanMessages};
use crate::store::seal::{Seal, opened, sealed};

/// Records asked for at a time.
const PAGE: usize = 500;

/// A store, and how long to wait for it.
pub(super) struct Records {
    store: Rc<dyn Store>,
    host: Rc<dyn Host>,
    timeout_ms: u64,
    /// Our name among the nodes that share the store; `None` if it is not shared.
    node: Option<OnceCell<String>>,
}

/// The outcome of a commit.
pub(super) enum CommitOutcome {
    /// The batch is applied.
    Done,
    /// The batch was applied, and another commit has followed it.
    Overtaken,
    /// Another commit was first; nothing is applied.
    Conflict,
}

impl Records {
    /// The records of a store that no other node shares, with a deadline for each operation.
    pub(super) fn new(store: Rc<dyn Store>, host: Rc<dyn Host>, timeout_ms: u64) -> Records {
        Records { store, host, timeout_ms, node: None }
    }

    /// The same, where other nodes may share the store.
    pub(super) fn with_nodes(self, are_there: bool) -> Records {
        Records { node: are_there.then(OnceCell::new), ..self }
    }

    /// Records in another store, with the same host.
    pub(super) fn over(&self, store: Rc<dyn Store>) -> Records {
        Records::new(store, Rc::clone(&self.host), self.timeout_ms)
    }

    /// Whether other nodes may share the store.
    pub(super) fn are_shared(&self) -> bool {
        self.node.is_some()
    }

    /// Who else can reach the store, as the store says.
    pub(super) fn shared(&self) -> Shared {
        self.store.capabilities().shared
    }

    /// A random id.
    pub(super) fn random_id(&self) -> String {
        id::random_id(&*self.host)
    }

    /// The time of the host, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> f64 {
        self.host.now_ms()
    }

    /// Commits a batch, with a seal on each record of a session. If the outcome is unknown, it is found out by reading the
    /// head.
    pub(super) async fn commit(&self, batch: &Batch) -> Result<CommitOutcome> {
        let put = batch.put.iter();
        let put = put.map(|(key, value)| (key.clone(), sealed(key, &batch.revision, value)));
        let batch = &Batch {
            expect: batch.expect.clone(),
            revision: batch.revision.clone(),
            put: put.collect(),
            remove: batch.remove.clone(),
            remove_prefix: batch.remove_prefix.clone(),
        };
        match self.within("a commit", self.store.commit(batch)).await {
            Ok(Committed::Done) => Ok(CommitOutcome::Done),
            Ok(Committed::Conflict) => Ok(CommitOutcome::Conflict),
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

    async fn settle(&self, batch: &Batch, error: Error) -> Result<CommitOutcome> {
        if let Some(outcome) = seams::unread_outcome(CommitOutcome::Done, CommitOutcome::Conflict) {
            return Ok(outcome);
        }
        let Some((head, expected)) = &batch.expect else { return Err(error) };
        let Ok(found) = self.get(head.clone()).await else { return Err(error) };
        let mut found = found.map(|record| record.revision);
        if found == *expected {
            match self.within("a commit", self.store.commit(batch)).await {
                Ok(Committed::Done) => return Ok(CommitOutcome::Done),
                // The first commit may have arrived after the read and before the second commit.
                Ok(Committed::Conflict) => {
                    found = self.get(head.clone()).await?.map(|record| record.revision);
                }
                Err(_) => return Err(error),
            }
        }
        if found.as_ref() == Some(&batch.revision) {
            return Ok(CommitOutcome::Done);
        }
        // If the batch was applied and another commit followed it, the record that only this batch writes exists.
        let Some((own, _)) = batch.put.first() else { return Err(error) };
        let own = self.get(own.clone()).await?;
        let applied = own.is_some_and(|record| record.revision == batch.revision);
        Ok(if applied { CommitOutcome::Overtaken } else { CommitOutcome::Conflict })
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

    /// One page of a list of sessions. A store may fail if one record of the page is damaged. Then each record is read by itself,
    /// and a damaged one has no bytes: the record of one session must not hide the others.
    pub(super) async fn list_lines(
        &self,
        prefix: &str,
        page: Page,
    ) -> Result<Vec<(String, Record)>> {
        match self.list(prefix, page.clone()).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => {}
            listed => return listed,
        }
        let mut lines = Vec::new();
        for (key, _) in self.list(prefix, Page { keys_only: true, ..page }).await? {
            let record = match self.get(key.clone()).await {
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => {
                    Some(Record { value: Vec::new(), revision: String::new() })
                }
                record => record?,
            };
            lines.extend(record.map(|record| (key, record)));
        }
        Ok(lines)
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

    /// The messages of a span. `None`: an entry is missing.
    pub(super) async fn span(
        &self,
        keys: &SlotKeys,
        from: &MessagePlace,
        to: &MessagePlace,
    ) -> Result<Option<SpanMessages>> {
        let entries = self.entries(keys, from.0.seq, to.0.seq).await?;
        Ok(log::span(&entries, from, to))
    }

    /// The entries with these numbers, of every path.
    pub(super) async fn entries(&self, keys: &SlotKeys, first: u64, last: u64) -> Result<Entries> {
        Ok(self.entries_in_order(keys, first, last).await?.into_iter().collect())
    }

    /// The same in the order of the log.
    pub(super) async fn entries_in_order(
        &self,
        keys: &SlotKeys,
        first: u64,
        last: u64,
    ) -> Result<Vec<(EntryRef, Entry)>> {
        let prefix = keys.log();
        let mut after = Some(keys.log_before(first));
        let mut entries = Vec::new();
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
                let entry = entry_of(&key, &name, &record)?;
                after = (full && name.seq <= last).then_some(key);
                entries.push((name, entry));
            }
        }
        Ok(entries)
    }

    /// One entry, if it is there.
    pub(super) async fn entry(&self, keys: &SlotKeys, name: &EntryRef) -> Result<Option<Entry>> {
        let key = keys.entry(name);
        let record = self.get(key.clone()).await?;
        record.map(|record| entry_of(&key, name, &record)).transpose()
    }

    /// Calls `make` with the host values for one batch.
    pub(super) fn change<T>(&self, make: impl FnOnce(HostValues<'_>) -> T) -> T {
        let word = || id::nonce(&*self.host);
        self.as_node(|node| make(HostValues { word: &word, now_ms: self.host.now_ms(), node }))
    }

    /// Calls `act` with this node, where nodes share the store.
    pub(super) fn as_node<T>(&self, act: impl FnOnce(Option<Node<'_>>) -> T) -> T {
        let is_gone = |node: &str| self.host.is_gone(node);
        // The name is made at the first use: before the first call no random bytes are requested.
        let name = || Some(self.host.node()).filter(|it| !it.is_empty());
        let name = || name().unwrap_or_else(|| id::random_id(&*self.host));
        let named = self.node.as_ref().map(|cell| cell.get_or_init(name).as_str());
        let now_ms = self.host.now_ms();
        act(named.map(|name| Node { name, now_ms, is_gone: &is_gone }))
    }
}

/// Reads a record. `what` names it in error messages.
pub(super) fn read<T>(
    key: &str,
    record: &Record,
    reader: json::Reader<T>,
    what: &str,
) -> Result<T> {
    let (value, _) = opened(key, record, what)?;
    reader(&value).map_err(|misread| misread.into_error(ErrorKind::StoreCorrupt, what))
}

/// Reads an entry. Every reader follows the parents of entries. So a parent has a lower number, or the entry is refused:
/// otherwise a ring would keep its readers for ever.
pub(super) fn entry_of(key: &str, name: &EntryRef, record: &Record) -> Result<Entry> {
    let entry = opened(key, record, "it").and_then(|(value, seal)| {
        let bad = |misread: Misread| misread.into_error(ErrorKind::StoreCorrupt, "it");
        let entry = Entry::from_json(&value).map_err(bad)?;
        let parent = entry.parent.as_ref().filter(|parent| parent.seq >= name.seq);
        let why = match parent {
            _ if entry.id != name.id => "it has the id of another entry".to_owned(),
            Some(parent) => format!("its parent is {parent}, which is not before it"),
            None => return Ok(Entry { is_copied: seal == Seal::Copied, ..entry }),
        };
        Err(Error::new(ErrorKind::StoreCorrupt, why))
    });
    entry.map_err(|error| {
        error
            .within(&format!("the entry {name} of the log cannot be read"))
            .hint("its bytes are kept; repairSession continues without it")
    })
}
