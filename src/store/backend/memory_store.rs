//! A store in memory: for tests, and for agents that keep nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::ready;

use crate::error::Result;
use crate::future::Local;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};

/// Records in the memory of this process. Bytes are copied in and out, so callers cannot change stored records.
pub struct MemoryStore {
    records: RefCell<BTreeMap<String, Record>>,
    shared: Shared,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::shared_by(Shared::Process)
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// An empty store that declares who else can write to it.
    pub fn shared_by(shared: Shared) -> MemoryStore {
        MemoryStore { records: RefCell::default(), shared }
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Record>) -> T) -> T {
        change(&mut self.records.borrow_mut())
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::whole(self.shared)
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        let found = self.with(|records| keys.iter().map(|key| records.get(key).cloned()).collect());
        Box::pin(ready(Ok(found)))
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        let start = page
            .after
            .clone()
            .filter(|after| after.as_str() > prefix)
            .unwrap_or_else(|| prefix.to_owned());
        let found = self.with(|records| {
            let from_start = records.range(start..).take_while(|(key, _)| key.starts_with(prefix));
            let after =
                from_start.filter(|(key, _)| page.after.as_ref().is_none_or(|after| *key > after));
            let copies = after.map(|(key, record)| (key.clone(), record.clone()));
            copies.take(page.limit.unwrap_or(usize::MAX)).collect()
        });
        Box::pin(ready(Ok(found)))
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let committed = self.with(|records| {
            if let Some((key, expected)) = &batch.expect
                && records.get(key).map(|record| &record.revision) != expected.as_ref()
            {
                return Committed::Conflict;
            }
            let below = batch.remove_prefix.iter().flat_map(|prefix| {
                let from_prefix =
                    records.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(prefix));
                from_prefix.map(|(key, _)| key.clone()).collect::<Vec<_>>()
            });
            for key in below.collect::<Vec<_>>().iter().chain(&batch.remove) {
                records.remove(key);
            }
            for (key, value) in &batch.put {
                let record = Record { value: value.clone(), revision: batch.revision.clone() };
                records.insert(key.clone(), record);
            }
            Committed::Done
        });
        Box::pin(ready(Ok(committed)))
    }
}
