//! Values and promises across the border.

use js_sys::{JSON, Promise};
use serde::{Serialize, Serializer};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::wasm::error::from_js;
use crate::wasm::task;

/// JSON text of TypeScript's. (Reading objects with serde-wasm-bindgen would cost 24 KB of wasm more, most of it for
/// printing numbers in errors, and would trap on a cycle.)
pub(super) fn value(text: &str, kind: ErrorKind, what: &str) -> Result<Value> {
    json::foreign(text.as_bytes(), json::DEEPEST).map_err(|error| {
        Error::new(kind, format!("{what} is not plain JSON: {error}"))
            .hint("use plain data, nested at most 100 deep")
    })
}

/// JSON as a JavaScript value: plain objects, not maps; an integer that a double cannot hold is a BigInt.
pub(super) fn object(from: &Value) -> JsValue {
    // Setting this member would change what the object inherits; JSON.parse makes a member of it.
    if names_prototype(from) {
        return JSON::parse(&from.to_string()).unwrap_or(JsValue::NULL);
    }
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    Exact(from).serialize(&serializer).unwrap_or(JsValue::NULL)
}

fn names_prototype(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(names_prototype),
        Value::Object(members) => {
            members.contains_key("__proto__") || members.values().any(names_prototype)
        }
        _ => false,
    }
}

/// JSON whose integers keep all their digits: serde-wasm-bindgen refuses them as numbers, and takes 128 bits for BigInt.
struct Exact<'a>(&'a Value);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match json::beyond_doubles(number) {
                Some(integer) => serializer.serialize_i128(integer),
                None => number.serialize(serializer),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Exact)),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, Exact(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

/// Waits for what a host function answered: a promise, or the value itself where it was at hand.
pub(super) async fn settled(
    answer: std::result::Result<JsValue, JsValue>,
    kind: ErrorKind,
) -> Result<JsValue> {
    settled_with(answer, |thrown| from_js(thrown, kind)).await
}

/// The same, where what was thrown is understood in a way of its own.
pub(super) async fn settled_with(
    answer: std::result::Result<JsValue, JsValue>,
    understand: impl Fn(JsValue) -> Error,
) -> Result<JsValue> {
    match answer.map_err(&understand)?.dyn_into::<Promise>() {
        Ok(promise) => task::settled(promise).await.map_err(understand),
        Err(value) => Ok(value),
    }
}
