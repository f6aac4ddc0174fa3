//! A store that JavaScript implements.

use js_sys::{Array, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Store};
use crate::wasm::error::JsResult;
use crate::wasm::values::settled;

#[wasm_bindgen]
extern "C" {
    /// A store as `src/npm/host/ports.ts` makes it. Each method returns its answer or a promise of it.
    pub type JsStore;
    /// The records under the keys, a JSON list.
    #[wasm_bindgen(method, catch)]
    fn get(this: &JsStore, keys: &str) -> JsResult<JsValue>;
    /// One page of the records below a prefix; the page is JSON.
    #[wasm_bindgen(method, catch)]
    fn list(this: &JsStore, prefix: &str, page: &str) -> JsResult<JsValue>;
    /// Applies a batch: JSON in which `put` is the list of keys, and the values of those keys.
    #[wasm_bindgen(method, catch)]
    fn commit(this: &JsStore, batch: &str, values: Vec<Uint8Array>) -> JsResult<JsValue>;

    /// A record from JavaScript.
    type JsRecord;
    #[wasm_bindgen(method, catch, getter)]
    fn key(this: &JsRecord) -> JsResult<JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    fn value(this: &JsRecord) -> JsResult<JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    fn revision(this: &JsRecord) -> JsResult<JsValue>;
}

/// A page in the form for JavaScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    keys_only: bool,
}

/// A batch in the form for JavaScript, without its values: `put` has only their keys.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<ExpectedText<'a>>,
    revision: &'a str,
    put: Vec<&'a str>,
    remove: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remove_prefix: &'a [String],
}

#[derive(Serialize)]
struct ExpectedText<'a> {
    key: &'a str,
    revision: &'a Option<String>,
}

/// A store that JavaScript implements.
pub(crate) struct CustomStore {
    store: JsStore,
    capabilities: Capabilities,
}

impl CustomStore {
    pub(crate) fn new(store: JsStore, capabilities: Capabilities) -> CustomStore {
        CustomStore { store, capabilities }
    }
}

impl Store for CustomStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        let answer = self.store.get(&json::to_text(&keys));
        Box::pin(async move {
            let found = settled(answer, ErrorKind::StoreUnavailable).await?;
            let found =
                found.dyn_into::<Array>().map_err(|_| misbehaved("get did not return a list"))?;
            if found.length() as usize != keys.len() {
                return Err(misbehaved("get did not return one record for each key"));
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
        let text =
            PageText { after: page.after.as_deref(), limit: page.limit, keys_only: page.keys_only };
        let answer = self.store.list(prefix, &json::to_text(&text));
        Box::pin(async move {
            let found = settled(answer, ErrorKind::StoreUnavailable).await?;
            let found =
                found.dyn_into::<Array>().map_err(|_| misbehaved("list did not return a list"))?;
            let mut records = Vec::new();
            for item in found.iter() {
                let key = item.unchecked_ref::<JsRecord>().key().ok().and_then(|it| it.as_string());
                let key = key.ok_or_else(|| misbehaved("list returned a record without a key"))?;
                // Records outside the requested range are dropped, even if a faulty store lists them.
                if key.starts_with(prefix) && page.after.as_ref().is_none_or(|after| key > *after) {
                    records.push((key, record(&item)?));
                }
            }
            Ok(records)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let text = BatchText {
            expect: batch.expect.as_ref().map(|(key, revision)| ExpectedText { key, revision }),
            revision: &batch.revision,
            put: batch.put.iter().map(|(key, _)| key.as_str()).collect(),
            remove: &batch.remove,
            remove_prefix: &batch.remove_prefix,
        };
        let values = batch.put.iter().map(|(_, value)| Uint8Array::from(value.as_slice()));
        let answer = self.store.commit(&json::to_text(&text), values.collect());
        Box::pin(async move {
            match settled(answer, ErrorKind::StoreUnavailable).await?.as_string().as_deref() {
                Some("ok") => Ok(Committed::Done),
                Some("conflict") => Ok(Committed::Conflict),
                _ => Err(misbehaved("commit returned neither ok nor conflict")),
            }
        })
    }
}

/// Reads a record from JavaScript.
pub(crate) fn record(item: &JsValue) -> Result<Record> {
    let item = item.unchecked_ref::<JsRecord>();
    let value = item.value().ok().and_then(|value| value.dyn_into::<Uint8Array>().ok());
    let revision = item.revision().ok().and_then(|revision| revision.as_string());
    match (value, revision) {
        (Some(value), Some(revision)) => Ok(Record { value: value.to_vec(), revision }),
        _ => Err(misbehaved("record has no bytes as value, or no revision")),
    }
}

fn misbehaved(what: &str) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("the store's {what}"))
        .hint("check the store against the rules in lockgate/testing")
}
