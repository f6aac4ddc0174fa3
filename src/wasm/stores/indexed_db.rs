//! A store in IndexedDB.
//!
//! One database with one object store of `{ value, revision }` under our keys. Every operation is one transaction, and
//! all its requests are issued at once, because a transaction without open requests closes by itself, and a transaction
//! that stays open blocks other tabs. A commit is done only when its transaction has completed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, Object, Reflect, Uint8Array};
use serde_json::Value;
use wasm_bindgen::prelude::*;
use web_sys::{IdbKeyRange, IdbObjectStore, IdbRequest};

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use crate::wasm::error::JsResult;
use crate::wasm::ports::host::sleep;
use crate::wasm::ports::store::record;
use crate::wasm::stores::database::{
    AGAIN_MS, Connection, Transaction, TransactionEnd, ended, failed, is_lost, thawed,
};
use crate::wasm::values::set;

/// Sorts after every key with the same prefix.
const LAST: char = '\u{ffff}';

/// A database of this origin. It is opened at its first use, and again after the browser has closed it.
pub struct IndexedDb {
    name: String,
    durability: String,
    connection: RefCell<Option<Connection>>,
}

impl IndexedDb {
    /// The database of this name, of `strict` or `relaxed` durability; nothing is opened yet.
    pub fn new(name: &str, durability: &str) -> IndexedDb {
        let (name, durability) = (name.to_owned(), durability.to_owned());
        IndexedDb { name, durability, connection: RefCell::default() }
    }

    /// The database of this configuration, `{ name, durability }`.
    pub(crate) fn open(config: &Value) -> Result<IndexedDb> {
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let nameless = || Error::new(ErrorKind::Options, "the database has no name");
        Ok(IndexedDb::new(
            text("name").ok_or_else(nameless)?,
            text("durability").unwrap_or("strict"),
        ))
    }

    /// Begins a transaction. If the browser has closed the database, it is opened again first.
    async fn begin(&self, mode: &str) -> Result<Transaction> {
        thawed().await;
        match self.connected(mode).await? {
            Err(thrown) if is_lost(&thrown) => {
                self.disconnect();
                self.connected(mode).await?.map_err(failed)
            }
            begun => begun.map_err(failed),
        }
    }

    async fn connected(&self, mode: &str) -> Result<JsResult<Transaction>> {
        if !self.is_connected() {
            let opened = Connection::open(&self.name).await?;
            // If two operations opened it at the same time, both use the first connection; the other is closed.
            if !self.is_connected() {
                *self.connection.borrow_mut() = Some(opened);
            }
        }
        let connection = self.connection.borrow();
        let lost = || Error::new(ErrorKind::StoreUnavailable, "the database was closed");
        Ok(connection.as_ref().ok_or_else(lost)?.begin(mode, &self.durability))
    }

    fn is_connected(&self) -> bool {
        self.connection.borrow().as_ref().is_some_and(Connection::is_open)
    }

    /// Drops the connection. It is opened again when it is needed.
    fn disconnect(&self) {
        let gone = self.connection.borrow_mut().take();
        drop(gone);
    }

    /// Reads in one transaction. If the connection is lost, it reads again, because reading changes nothing.
    async fn ask<T>(&self, ask: impl Fn(&IdbObjectStore) -> JsResult<T>) -> Result<T> {
        let mut waits = AGAIN_MS.iter();
        loop {
            let (transaction, records) = self.begin("readonly").await?;
            let asked = ask(&records).map_err(failed)?;
            let thrown = match ended(&transaction).await {
                TransactionEnd::Done => return Ok(asked),
                TransactionEnd::GivenUp => continue,
                TransactionEnd::Threw(thrown) => thrown,
            };
            match waits.next() {
                Some(ms) if is_lost(&thrown) => {
                    self.disconnect();
                    sleep(*ms).await;
                }
                _ => return Err(failed(thrown)),
            }
        }
    }

    async fn read(&self, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let requests = self.ask(|records| {
            keys.iter().map(|key| records.get(&key.into())).collect::<JsResult<Vec<IdbRequest>>>()
        });
        let found = |request: &IdbRequest| {
            let value = request.result().map_err(failed)?;
            if value.is_undefined() { Ok(None) } else { record(&value).map(Some) }
        };
        requests.await?.iter().map(found).collect()
    }

    async fn range(&self, prefix: &str, page: Page) -> Result<Vec<(String, Record)>> {
        let after = page.after.as_deref().filter(|after| *after >= prefix);
        let (lower, open) = (after.unwrap_or(prefix), after.is_some());
        let upper = format!("{prefix}{LAST}");
        let limit = page.limit.unwrap_or(u32::MAX as usize).min(u32::MAX as usize) as u32;
        if lower > upper.as_str() || limit == 0 {
            return Ok(Vec::new());
        }
        let range = IdbKeyRange::bound_with_lower_open(&lower.into(), &upper.into(), open)
            .map_err(failed)?;
        let (keys, values) = self
            .ask(|records| {
                let keys = records.get_all_keys_with_key_and_limit(&range, limit)?;
                let values = records.get_all_with_key_and_limit(&range, limit)?;
                Ok((keys, values))
            })
            .await?;
        let list =
            |request: IdbRequest| request.result().map(|found| Array::from(&found)).map_err(failed);
        let (keys, values) = (list(keys)?, list(values)?);
        let pairs = keys.iter().zip(values.iter());
        pairs
            .map(|(key, value)| Ok((key.as_string().unwrap_or_default(), record(&value)?)))
            .collect()
    }

    async fn write(&self, batch: &Batch) -> Result<Committed> {
        loop {
            if let Some(committed) = self.try_write(batch).await? {
                return Ok(committed);
            }
        }
    }

    /// Writes a batch in one transaction. `None`: the transaction was aborted before a freeze, and nothing is written.
    async fn try_write(&self, batch: &Batch) -> Result<Option<Committed>> {
        let (transaction, records) = self.begin("readwrite").await?;
        let conflict = Rc::new(Cell::new(false));
        let _check = batch.expect.as_ref().map(|(key, expected)| {
            let (flag, handle, expected) =
                (Rc::clone(&conflict), transaction.clone(), expected.clone());
            expecting(&records, key, move |found| {
                if found != expected {
                    flag.set(true);
                    // This undoes all requests below.
                    let _ = handle.abort();
                }
            })
        });
        let removes = batch.remove.iter().map(|key| records.delete(&key.into()));
        let prefixes = batch.remove_prefix.iter().map(|prefix| {
            let range = IdbKeyRange::bound(&prefix.into(), &format!("{prefix}{LAST}").into())?;
            records.delete(&range)
        });
        let puts = batch.put.iter().map(|(key, value)| {
            let record = Object::new();
            set(&record, "value", &Uint8Array::from(value.as_slice()));
            set(&record, "revision", &(&batch.revision).into());
            records.put_with_key(&record, &key.into())
        });
        for request in prefixes.chain(removes).chain(puts) {
            if let Err(thrown) = request {
                let _ = transaction.abort();
                return Err(failed(thrown));
            }
        }
        match ended(&transaction).await {
            _ if conflict.get() => Ok(Some(Committed::Conflict)),
            TransactionEnd::Done => Ok(Some(Committed::Done)),
            TransactionEnd::GivenUp => Ok(None),
            TransactionEnd::Threw(thrown) => {
                // The next operation opens a new connection, for example the read that finds out if this commit was
                // done.
                if is_lost(&thrown) {
                    self.disconnect();
                }
                Err(failed(thrown))
            }
        }
    }
}

impl Store for IndexedDb {
    fn capabilities(&self) -> Capabilities {
        Capabilities::whole(Shared::Origin)
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(self.read(keys))
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(self.range(prefix, page))
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(self.write(batch))
    }
}

/// Reads the revision of a key, and calls `compare` with it when it has arrived. The closure must live until then.
fn expecting(
    records: &IdbObjectStore,
    key: &str,
    compare: impl FnOnce(Option<String>) + 'static,
) -> Option<Closure<dyn FnMut()>> {
    let request = records.get(&key.into()).ok()?;
    let (answered, mut compare) = (request.clone(), Some(compare));
    let on_success = Closure::<dyn FnMut()>::new(move || {
        let found = answered.result().unwrap_or_default();
        let revision = Reflect::get(&found, &"revision".into()).ok().and_then(|it| it.as_string());
        if let Some(compare) = compare.take() {
            compare(revision);
        }
    });
    request.set_onsuccess(Some(on_success.as_ref().unchecked_ref()));
    Some(on_success)
}
