//! Values and promises across the border.

use js_sys::{JSON, Object, Promise, Reflect};
use serde::{Serialize, Serializer};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::wasm::error::{JsResult, from_js};
use crate::wasm::task;

/// Reads JSON text that TypeScript wrote.
pub(crate) fn value(text: &str, kind: ErrorKind, what: &str) -> Result<Value> {
    json::foreign(text.as_bytes(), json::DEEPEST).map_err(|error| {
        Error::new(kind, format!("{what} is not plain JSON: {error}"))
            .hint("use plain data, nested at most 100 deep")
    })
}

/// JSON as a JavaScript value. Objects become plain objects, and an integer that a double cannot hold becomes a BigInt.
pub(crate) fn object(from: &Value) -> JsValue {
    // Setting a member named `__proto__` would change the prototype of the object. JSON.parse makes it a plain member.
    if names_prototype(from) {
        return JSON::parse(&from.to_string()).unwrap_or(JsValue::NULL);
    }
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    ExactIntegers(from).serialize(&serializer).unwrap_or(JsValue::NULL)
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

/// JSON whose integers keep all their digits: serde-wasm-bindgen converts 128-bit integers to BigInt.
struct ExactIntegers<'a>(&'a Value);

impl Serialize for ExactIntegers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match json::beyond_doubles(number) {
                Some(integer) => serializer.serialize_i128(integer),
                None => number.serialize(serializer),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(ExactIntegers)),
            Value::Object(members) => serializer
                .collect_map(members.iter().map(|(name, value)| (name, ExactIntegers(value)))),
            Value::Null => serializer.serialize_unit(),
            Value::Bool(is_true) => serializer.serialize_bool(*is_true),
            Value::String(text) => serializer.serialize_str(text),
        }
    }
}

/// Sets a member of a fresh plain object, which cannot throw.
pub(crate) fn set(object: &Object, name: &str, value: &JsValue) {
    let _ = Reflect::set(object, &name.into(), value);
}

/// Waits for the answer of a function in JavaScript: a promise, or the value itself.
pub(crate) async fn settled(answer: JsResult<JsValue>, kind: ErrorKind) -> Result<JsValue> {
    settled_with(answer, |thrown| from_js(thrown, kind)).await
}

/// The same, with another way to read what was thrown.
pub(crate) async fn settled_with(
    answer: JsResult<JsValue>,
    understand: impl Fn(JsValue) -> Error,
) -> Result<JsValue> {
    match answer.map_err(&understand)?.dyn_into::<Promise>() {
        Ok(promise) => task::settled(promise).await.map_err(understand),
        Err(value) => Ok(value),
    }
}
