//! A store of the browser that TypeScript uses without an agent.

use std::rc::Rc;

use js_sys::{Array, Object, Uint8Array};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Read};
use crate::port::{Batch, Committed, Page, Record, Store};
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::ports::lock::JsLocks;
use crate::wasm::stores::own_store;
use crate::wasm::task::PolledTask;
use crate::wasm::values::{set, value};

/// A store of the browser that TypeScript uses directly. Its methods have the arguments of `JsStore`.
#[wasm_bindgen]
pub struct OpenStore(Rc<dyn Store>);

#[wasm_bindgen]
impl OpenStore {
    /// The store of a configuration, as JSON: `{ indexedDb }` or `{ localStorage }`. Only localStorage uses the locks.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, locks: JsLocks) -> JsResult<OpenStore> {
        let open = || {
            let config = value(config, ErrorKind::Options, "the store")?;
            let unknown = || Error::new(ErrorKind::Options, "the browser has no such store");
            own_store(&config, || locks)?.ok_or_else(unknown)
        };
        open().map(OpenStore).map_err(|error: Error| to_js(&error))
    }

    /// The records under the keys, a JSON list.
    pub fn get(&self, keys: &str) -> JsResult<PolledTask> {
        let store = Rc::clone(&self.0);
        let keys = read(keys, "the keys", json::texts)?;
        Ok(PolledTask::new(Box::pin(async move {
            let found = store.get(&keys).await?;
            let records = found
                .iter()
                .map(|it| it.as_ref().map_or(JsValue::NULL, |it| from_record(it).into()));
            Ok(records.collect::<Array>().into())
        })))
    }

    /// One page of the records whose key begins with `prefix`; the page is JSON.
    pub fn list(&self, prefix: String, page: &str) -> JsResult<PolledTask> {
        let store = Rc::clone(&self.0);
        let page = read(page, "the page", |page| {
            let fields = Fields::of(page)?;
            let limit = fields.optional("limit", json::count)?.map(|limit| limit as usize);
            Ok(Page { after: fields.optional("after", json::text)?, limit, keys_only: false })
        })?;
        Ok(PolledTask::new(Box::pin(async move {
            let found = store.list(&prefix, page).await?;
            let records = found.iter().map(|(key, record)| {
                let object = from_record(record);
                set(&object, "key", &key.into());
                object
            });
            Ok(records.collect::<Array>().into())
        })))
    }

    /// Applies a batch: JSON in which `put` is the list of keys, and the values of those keys.
    pub fn commit(
        &self,
        batch: &str,
        #[wasm_bindgen(unchecked_param_type = "readonly Uint8Array[]")] values: Vec<JsValue>,
    ) -> JsResult<PolledTask> {
        let store = Rc::clone(&self.0);
        let batch = read(batch, "the batch", |batch| batch_of(batch, values))?;
        Ok(PolledTask::new(Box::pin(async move {
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
    set(&object, "value", &Uint8Array::from(record.value.as_slice()));
    set(&object, "revision", &(&record.revision).into());
    object
}

/// Reads a part of a request to the store.
fn read<T>(text: &str, what: &str, read: impl FnOnce(&Value) -> Read<T>) -> JsResult<T> {
    let part = || -> Result<T> {
        let wrong = |misread: Misread| {
            let hint = "see Store and Batch in the package's types";
            misread.into_error(ErrorKind::InputInvalid, what).hint(hint)
        };
        read(&value(text, ErrorKind::InputInvalid, what)?).map_err(wrong)
    };
    part().map_err(|error| to_js(&error))
}

fn batch_of(batch: &Value, values: Vec<JsValue>) -> Read<Batch> {
    let fields = Fields::of(batch)?;
    let expected = |value: &Value| {
        let fields = Fields::of(value)?;
        Ok((fields.required("key", json::text)?, fields.optional("revision", json::text)?))
    };
    let keys = fields.required("put", json::texts)?;
    let bytes =
        |value: JsValue| Ok(value.dyn_into::<Uint8Array>().map_err(|_| no_bytes())?.to_vec());
    let values = values.into_iter().map(bytes).collect::<Read<Vec<Vec<u8>>>>()?;
    if values.len() != keys.len() {
        return Err(no_bytes());
    }
    Ok(Batch {
        expect: fields.optional("expect", expected)?,
        revision: fields.required("revision", json::text)?,
        remove: fields.or_default("remove", json::texts)?,
        remove_prefix: fields.or_default("removePrefix", json::texts)?,
        put: keys.into_iter().zip(values).collect(),
    })
}

fn no_bytes() -> Misread {
    Misread::new("bytes as the value of each key in put")
}
