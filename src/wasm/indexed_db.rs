//! A store in IndexedDB.
//!
//! One database, one object store of `{ value, revision }` under our keys. Every operation is one transaction whose
//! requests are all issued at once: a transaction closes by itself as soon as nothing is asked of it, and one that
//! is kept open would block other tabs. A commit counts when its transaction has completed, not before.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, Object, Promise, Reflect, Uint8Array};
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    DomException, IdbDatabase, IdbFactory, IdbKeyRange, IdbObjectStore, IdbOpenDbRequest,
    IdbRequest, IdbTransaction,
};

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use crate::wasm::error::from_js;
use crate::wasm::store::{put, record};

/// The object store that holds everything.
const RECORDS: &str = "records";

/// Sorts behind every key that begins with what stands before it.
const LAST: char = '\u{ffff}';

#[wasm_bindgen]
extern "C" {
    // web-sys keeps the options of a transaction behind an unstable flag.
    #[wasm_bindgen(extends = IdbDatabase)]
    type Database;
    #[wasm_bindgen(method, catch)]
    fn transaction(
        this: &Database,
        store: &str,
        mode: &str,
        options: &Object,
    ) -> std::result::Result<IdbTransaction, JsValue>;
}

/// A database of this origin; opened at its first use, and again after the browser has closed it.
pub struct IndexedDb {
    name: String,
    durability: String,
    connection: RefCell<Option<Connection>>,
}

/// An open database, and whether somebody has closed it.
struct Connection {
    database: Database,
    closed: Rc<Cell<bool>>,
    _on_close: Closure<dyn FnMut()>,
}

impl IndexedDb {
    /// The database of this name, of `strict` or `relaxed` durability; nothing is opened yet.
    pub fn new(name: &str, durability: &str) -> IndexedDb {
        let (name, durability) = (name.to_owned(), durability.to_owned());
        IndexedDb { name, durability, connection: RefCell::default() }
    }

    /// The database of this configuration, `{ name, durability }`.
    pub(super) fn open(config: &Value) -> Result<IndexedDb> {
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let nameless = || Error::new(ErrorKind::Options, "the database has no name");
        Ok(IndexedDb::new(
            text("name").ok_or_else(nameless)?,
            text("durability").unwrap_or("strict"),
        ))
    }

    /// A transaction; if the browser has closed the database meanwhile, of a database opened anew.
    async fn begin(&self, mode: &str) -> Result<(IdbTransaction, IdbObjectStore)> {
        let options = Object::new();
        put(&options, "durability", &self.durability.as_str().into());
        for attempt in 0.. {
            let database = self.connect().await?;
            match database.transaction(RECORDS, mode, &options) {
                Ok(transaction) => {
                    let records = transaction.object_store(RECORDS).map_err(failed)?;
                    return Ok((transaction, records));
                }
                Err(thrown) if attempt > 0 => return Err(failed(thrown)),
                Err(_) => self.connection.borrow_mut().take(),
            };
        }
        Err(Error::new(ErrorKind::Internal, "unreachable"))
    }

    async fn connect(&self) -> Result<Database> {
        if let Some(connection) = self.connection.borrow().as_ref().filter(|it| !it.closed.get()) {
            return Ok(connection.database.clone().unchecked_into());
        }
        let database: Database = open(&self.name).await?.unchecked_into();
        let closed = Rc::new(Cell::new(false));
        let (flag, handle) = (Rc::clone(&closed), database.clone().unchecked_into::<IdbDatabase>());
        // Another tab wants to upgrade or delete the database: let it, and open it again when needed.
        let on_close = Closure::<dyn FnMut()>::new(move || {
            flag.set(true);
            handle.close();
        });
        database.set_onversionchange(Some(on_close.as_ref().unchecked_ref()));
        database.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        let connection =
            Connection { database: database.clone().unchecked_into(), closed, _on_close: on_close };
        *self.connection.borrow_mut() = Some(connection);
        Ok(database)
    }

    async fn read(&self, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let (transaction, records) = self.begin("readonly").await?;
        let mut requests = Vec::new();
        for key in keys {
            requests.push(records.get(&key.into()).map_err(failed)?);
        }
        completed(&transaction).await?;
        let found = |request: &IdbRequest| {
            let value = request.result().map_err(failed)?;
            if value.is_undefined() { Ok(None) } else { record(&value).map(Some) }
        };
        requests.iter().map(found).collect()
    }

    async fn range(&self, prefix: &str, page: Page) -> Result<Vec<(String, Record)>> {
        let after = page.after.as_deref().filter(|after| *after >= prefix);
        let (lower, open) = (after.unwrap_or(prefix), after.is_some());
        let upper = format!("{prefix}{LAST}");
        if lower > upper.as_str() {
            return Ok(Vec::new());
        }
        let range = IdbKeyRange::bound_with_lower_open(&lower.into(), &upper.into(), open)
            .map_err(failed)?;
        let limit = page.limit.unwrap_or(u32::MAX as usize).min(u32::MAX as usize) as u32;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (transaction, records) = self.begin("readonly").await?;
        let keys = records.get_all_keys_with_key_and_limit(&range, limit).map_err(failed)?;
        let values = records.get_all_with_key_and_limit(&range, limit).map_err(failed)?;
        completed(&transaction).await?;
        let list =
            |request: IdbRequest| request.result().map(|found| Array::from(&found)).map_err(failed);
        let (keys, values) = (list(keys)?, list(values)?);
        let pairs = keys.iter().zip(values.iter());
        pairs
            .map(|(key, value)| Ok((key.as_string().unwrap_or_default(), record(&value)?)))
            .collect()
    }

    async fn write(&self, batch: &Batch) -> Result<Committed> {
        let (transaction, records) = self.begin("readwrite").await?;
        let conflict = Rc::new(Cell::new(false));
        let _check = batch.expect.as_ref().map(|(key, expected)| {
            let (flag, handle, expected) =
                (Rc::clone(&conflict), transaction.clone(), expected.clone());
            expecting(&records, key, move |found| {
                if found != expected {
                    flag.set(true);
                    // Everything asked for below is undone with it.
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
            put(&record, "value", &Uint8Array::from(value.as_slice()));
            put(&record, "revision", &(&batch.revision).into());
            records.put_with_key(&record, &key.into())
        });
        for request in prefixes.chain(removes).chain(puts) {
            if let Err(thrown) = request {
                let _ = transaction.abort();
                return Err(failed(thrown));
            }
        }
        match completed(&transaction).await {
            _ if conflict.get() => Ok(Committed::Conflict),
            Ok(()) => Ok(Committed::Done),
            Err(error) => Err(error),
        }
    }
}

impl Store for IndexedDb {
    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic: true, compare_and_set: true, shared: Shared::Origin }
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

/// Asks for the revision of a key and compares it when it has come; the closure must live until then.
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

/// Opens a database, and makes its object store the first time.
async fn open(name: &str) -> Result<IdbDatabase> {
    let factory = Reflect::get(&js_sys::global(), &"indexedDB".into()).unwrap_or_default();
    let factory = factory.dyn_into::<IdbFactory>().map_err(|_| {
        Error::new(ErrorKind::StoreUnavailable, "there is no IndexedDB here")
            .hint("use memoryStore() instead")
    })?;
    let request: IdbOpenDbRequest = factory.open_with_u32(name, 1).map_err(failed)?;
    let upgrading = request.clone();
    let on_upgrade = Closure::<dyn FnMut()>::new(move || {
        let database = upgrading.result().ok().and_then(|it| it.dyn_into::<IdbDatabase>().ok());
        if let Some(database) = database {
            // A failure here aborts the upgrade, and the opening with it.
            let _ = database.create_object_store(RECORDS);
        }
    });
    request.set_onupgradeneeded(Some(on_upgrade.as_ref().unchecked_ref()));
    let opened = Promise::new(&mut |resolve, reject| {
        request.set_onsuccess(Some(&resolve));
        request.set_onerror(Some(&reject));
        request.set_onblocked(Some(&reject));
    });
    if JsFuture::from(opened).await.is_err() {
        return Err(match request.error() {
            Ok(Some(error)) => failed(error.into()),
            _ => Error::new(
                ErrorKind::StoreBlocked,
                format!("another page holds the database \"{name}\""),
            )
            .hint("close other tabs of this site and try again"),
        });
    }
    request.result().map_err(failed).map(JsCast::unchecked_into)
}

/// Waits until a transaction is on its way to the disk.
async fn completed(transaction: &IdbTransaction) -> Result<()> {
    let ended = Promise::new(&mut |resolve, reject| {
        transaction.set_oncomplete(Some(&resolve));
        transaction.set_onabort(Some(&reject));
    });
    match JsFuture::from(ended).await {
        Ok(_) => Ok(()),
        Err(_) => Err(match transaction.error() {
            Some(error) => failed(error.into()),
            None => Error::new(ErrorKind::StoreUnavailable, "the browser aborted the transaction"),
        }),
    }
}

/// What IndexedDB threw, as callers branch on it.
fn failed(thrown: JsValue) -> Error {
    let name = thrown.dyn_ref::<DomException>().map(DomException::name).unwrap_or_default();
    let (kind, hint) = match name.as_str() {
        "QuotaExceededError" => {
            (ErrorKind::StoreQuota, "delete sessions, or free space on the disk")
        }
        "VersionError" => {
            (ErrorKind::StateVersion, "a newer version of this page has used the database: reload")
        }
        "SecurityError" => {
            (ErrorKind::StoreUnavailable, "the browser forbids storage here; use memoryStore()")
        }
        _ => (ErrorKind::StoreUnavailable, "try again; reload the page if it stays so"),
    };
    let error = from_js(thrown, kind);
    let message = format!("IndexedDB failed: {}", error.message());
    let error = match error.cause() {
        Some(cause) => Error::new(kind, message).because(Rc::clone(cause)),
        None => Error::new(kind, message),
    };
    error.hint(hint)
}
