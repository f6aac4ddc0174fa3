//! The stores of a browser that Rust implements: IndexedDB and localStorage.

mod database;
mod indexed_db;
mod local_storage;
mod open_store;

use std::rc::Rc;

use serde_json::Value;

use crate::error::Result;
use crate::port::Store;
use crate::wasm::ports::lock::JsLocks;

pub use indexed_db::IndexedDb;
pub use local_storage::LocalStore;
pub use open_store::OpenStore;

/// The store of a configuration `{ indexedDb }` or `{ localStorage }`; none for other configurations.
pub(crate) fn own_store(
    config: &Value,
    locks: impl FnOnce() -> JsLocks,
) -> Result<Option<Rc<dyn Store>>> {
    if let Some(config) = config.get("indexedDb") {
        return Ok(Some(Rc::new(IndexedDb::open(config)?)));
    }
    if let Some(config) = config.get("localStorage") {
        return Ok(Some(Rc::new(LocalStore::open(config, locks())?)));
    }
    Ok(None)
}
