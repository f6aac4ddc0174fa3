//! A store as the engine uses it: ours, or one written in JavaScript.

use std::rc::Rc;

use js_sys::{Array, Object, Reflect, Uint8Array};
use serde::Serialize;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Store};
use crate::wasm::agent::port;
use crate::wasm::error::to_js;
use crate::wasm::indexed_db::IndexedDb;
use crate::wasm::js::{settled, value};
use crate::wasm::local_storage::LocalStore;
use crate::wasm::options;
use crate::wasm::task::Task;

#[wasm_bindgen]
extern "C" {
    /// The store as `src/npm/host.ts` hands it over.
    type JsStore;
    /// The keys are lines of one text.
    #[wasm_bindgen(method, catch)]
    fn get(this: &JsStore, keys: &str) -> std::result::Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn list(this: &JsStore, prefix: &str, page: &str) -> std::result::Result<JsValue, JsValue>;
    /// The batch is JSON, with the length of each value in its place; the values themselves follow each other.
    #[wasm_bindgen(method, catch)]
    fn commit(this: &JsStore, batch: &str, values: &[u8]) -> std::result::Result<JsValue, JsValue>;

    /// A record that JavaScript kept.
    type JsRecord;
    #[wasm_bindgen(method, catch, getter)]
    fn key(this: &JsRecord) -> std::result::Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    fn value(this: &JsRecord) -> std::result::Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    fn revision(this: &JsRecord) -> std::result::Result<JsValue, JsValue>;
}

/// The store of a configuration, `{ indexedDb } | { localStorage } | { capabilities }`: the browser's own are kept by
/// Rust, every other one by JavaScript.
pub(super) fn open_store(config: Option<&Value>, ports: &JsValue) -> Result<Rc<dyn Store>> {
    let of = |name: &str| config.and_then(|config| config.get(name));
    if let Some(config) = of("indexedDb") {
        return Ok(Rc::new(IndexedDb::open(config)?));
    }
    if let Some(config) = of("localStorage") {
        let lock = port(ports, "storeLock").unchecked_into();
        return Ok(Rc::new(LocalStore::open(config, lock)?));
    }
    let capabilities = options::capabilities(of("capabilities").unwrap_or(&Value::Null))?;
    let store = port(ports, "store").unchecked_into::<JsStore>();
    Ok(Rc::new(CustomStore { store, capabilities }))
}

/// A page as JavaScript takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    keys_only: bool,
}

/// A batch as JavaScript takes it, but for its values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lengths<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<Expect<'a>>,
    revision: &'a str,
    put: Vec<Put<'a>>,
    remove: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remove_prefix: &'a [String],
}

#[derive(Serialize)]
struct Expect<'a> {
    key: &'a str,
    revision: &'a Option<String>,
}

#[derive(Serialize)]
struct Put<'a> {
    key: &'a str,
    value: usize,
}

/// A store that JavaScript keeps.
struct CustomStore {
    store: JsStore,
    capabilities: Capabilities,
}

impl Store for CustomStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        let answer = self.store.get(&keys.join("\n"));
        Box::pin(async move {
            let found = settled(answer, ErrorKind::StoreUnavailable).await?;
            let found = found
                .dyn_into::<Array>()
                .map_err(|_| misbehaved("get did not answer with a list"))?;
            if found.length() as usize != keys.len() {
                return Err(misbehaved("get did not answer with one record for each key"));
            }
            found
                .iter()
                .map(
                    |item| {
                        if item.is_null_or_undefined() { Ok(None) } else { record(&item).map(Some) }
                    },
                )
                .collect()
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        let about =
            About { after: page.after.as_deref(), limit: page.limit, keys_only: page.keys_only };
        let answer = self.store.list(prefix, &json::to_text(&about));
        Box::pin(async move {
            let found = settled(answer, ErrorKind::StoreUnavailable).await?;
            let found = found
                .dyn_into::<Array>()
                .map_err(|_| misbehaved("list did not answer with a list"))?;
            let mut records = Vec::new();
            for item in found.iter() {
                let key = item.unchecked_ref::<JsRecord>().key().ok().and_then(|it| it.as_string());
                let key =
                    key.ok_or_else(|| misbehaved("list answered with a record without a key"))?;
                // Whatever a store lists, nobody sees a record outside what was asked for.
                if key.starts_with(prefix) && page.after.as_ref().is_none_or(|after| key > *after) {
                    records.push((key, record(&item)?));
                }
            }
            Ok(records)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let lengths = batch.put.iter().map(|(key, value)| Put { key, value: value.len() });
        let about = Lengths {
            expect: batch.expect.as_ref().map(|(key, revision)| Expect { key, revision }),
            revision: &batch.revision,
            put: lengths.collect(),
            remove: &batch.remove,
            remove_prefix: &batch.remove_prefix,
        };
        let values: Vec<_> = batch.put.iter().map(|(_, value)| value.as_slice()).collect();
        let answer = self.store.commit(&json::to_text(&about), &values.concat());
        Box::pin(async move {
            match settled(answer, ErrorKind::StoreUnavailable).await?.as_string().as_deref() {
                Some("ok") => Ok(Committed::Done),
                Some("conflict") => Ok(Committed::Conflict),
                _ => Err(misbehaved("commit answered neither ok nor conflict")),
            }
        })
    }
}

/// Setting a member of a fresh plain object cannot throw.
pub(super) fn put(object: &Object, name: &str, value: &JsValue) {
    let _ = Reflect::set(object, &name.into(), value);
}

/// A record that JavaScript kept.
pub(super) fn record(item: &JsValue) -> Result<Record> {
    let item = item.unchecked_ref::<JsRecord>();
    let value = item.value().ok().and_then(|value| value.dyn_into::<Uint8Array>().ok());
    let revision = item.revision().ok().and_then(|revision| revision.as_string());
    match (value, revision) {
        (Some(value), Some(revision)) => Ok(Record { value: value.to_vec(), revision }),
        _ => Err(misbehaved("a record has no bytes as value, or no revision")),
    }
}

fn misbehaved(what: &str) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("the store's {what}"))
        .hint("check the store against the rules in lockgate/testing")
}

/// A store of ours that TypeScript uses directly.
#[wasm_bindgen]
pub struct OpenStore(Rc<dyn Store>);

#[wasm_bindgen]
impl OpenStore {
    /// A store of ours, by the configuration and the ports that an agent over it would be given.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, ports: &JsValue) -> std::result::Result<OpenStore, JsValue> {
        let open = || open_store(Some(&value(config, ErrorKind::Options, "the store")?), ports);
        open().map(OpenStore).map_err(|error| to_js(&error))
    }

    /// The records under the keys.
    pub fn get(&self, keys: Vec<String>) -> Task {
        let store = Rc::clone(&self.0);
        Task::new(Box::pin(async move {
            let found = store.get(&keys).await?;
            let records = found
                .iter()
                .map(|it| it.as_ref().map_or(JsValue::NULL, |it| from_record(it).into()));
            Ok(records.collect::<Array>().into())
        }))
    }

    /// One page of the records whose key begins with `prefix`.
    pub fn list(&self, prefix: String, after: Option<String>, limit: Option<u32>) -> Task {
        let store = Rc::clone(&self.0);
        Task::new(Box::pin(async move {
            let page = Page { after, limit: limit.map(|limit| limit as usize), keys_only: false };
            let found = store.list(&prefix, page).await?;
            let records = found.iter().map(|(key, record)| {
                let object = from_record(record);
                put(&object, "key", &key.into());
                object
            });
            Ok(records.collect::<Array>().into())
        }))
    }

    /// Applies a batch.
    pub fn commit(&self, batch: &JsValue) -> std::result::Result<Task, JsValue> {
        let store = Rc::clone(&self.0);
        let batch = from_object(batch).map_err(|error| to_js(&error))?;
        Ok(Task::new(Box::pin(async move {
            let word = match store.commit(&batch).await? {
                Committed::Done => "ok",
                Committed::Conflict => "conflict",
            };
            Ok(word.into())
        })))
    }
}

fn from_record(record: &Record) -> Object {
    let object = Object::new();
    put(&object, "value", &Uint8Array::from(record.value.as_slice()));
    put(&object, "revision", &(&record.revision).into());
    object
}

/// A batch as a caller in JavaScript wrote it.
fn from_object(batch: &JsValue) -> Result<Batch> {
    let wrong = || {
        Error::new(ErrorKind::InputInvalid, "that is no batch")
            .hint("see Batch in the package's types")
    };
    let member = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).map_err(|_| wrong());
    let text = |of: &JsValue, name: &str| member(of, name)?.as_string().ok_or_else(wrong);
    let texts = |name: &str| -> Result<Vec<String>> {
        let list = member(batch, name)?;
        if list.is_undefined() {
            return Ok(Vec::new());
        }
        Array::from(&list).iter().map(|item| item.as_string().ok_or_else(wrong)).collect()
    };
    let expected = member(batch, "expect")?;
    let expect = match expected.is_undefined() {
        true => None,
        false => Some((text(&expected, "key")?, member(&expected, "revision")?.as_string())),
    };
    let mut puts = Vec::new();
    for item in Array::from(&member(batch, "put")?).iter() {
        let bytes = member(&item, "value")?.dyn_into::<Uint8Array>().map_err(|_| wrong())?;
        puts.push((text(&item, "key")?, bytes.to_vec()));
    }
    let (remove, remove_prefix) = (texts("remove")?, texts("removePrefix")?);
    Ok(Batch { expect, revision: text(batch, "revision")?, remove, remove_prefix, put: puts })
}
