//! Values and promises across the border.

use js_sys::Promise;
use serde::Serialize;
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::wasm::error::from_js;

/// JSON text of TypeScript's. (Reading objects with serde-wasm-bindgen would cost 24 KB of wasm more, most of it for
/// printing numbers in errors, and would trap on a cycle.)
pub(super) fn value(text: &str, kind: ErrorKind, what: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(kind, format!("{what} is not plain JSON: {error}"))
            .hint("use plain data, nested at most 128 deep")
    })
}

/// JSON as a JavaScript value: plain objects, not maps.
pub(super) fn object(from: &Value) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    from.serialize(&serializer).unwrap_or(JsValue::NULL)
}

/// Waits for what a host function answered: a promise, or the value itself where it was at hand.
pub(super) async fn settled(
    answer: std::result::Result<JsValue, JsValue>,
    kind: ErrorKind,
) -> Result<JsValue> {
    let answer = answer.map_err(|thrown| from_js(thrown, kind))?;
    match answer.dyn_into::<Promise>() {
        Ok(promise) => JsFuture::from(promise).await.map_err(|thrown| from_js(thrown, kind)),
        Err(value) => Ok(value),
    }
}
