//! Errors across the border: our errors for JavaScript, and values that JavaScript throws.

use std::fmt;
use std::rc::Rc;

use js_sys::{JsString, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::json::halves;
use crate::message::{MAX_TOOL_TEXT, note};
use crate::policy::failure::{self, Failure, Meaning};
use crate::policy::redact::redacted;

/// The result of a call across the border. The error is a thrown JavaScript value.
pub(crate) type JsResult<T> = std::result::Result<T, JsValue>;

/// The most characters that are kept of the message of a thrown value. The message can be stored, and code of users throws
/// messages of any length.
const MAX_MESSAGE: usize = 10_000;

/// The most characters of a provider's response that are read to classify its error.
const MAX_BODY: usize = 1_000_000;

/// A value that JavaScript threw, of any type. It is kept, so that JavaScript gets the same object back as `cause`.
struct Thrown {
    value: JsValue,
    text: String,
}

impl fmt::Debug for Thrown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Thrown {}

/// Converts a thrown value to our error type. The kind is that of its `code` if we know the code, otherwise `kind`.
pub(crate) fn from_js(value: JsValue, kind: ErrorKind) -> Error {
    let text = message_of(&value, MAX_MESSAGE);
    let code = member(&value, "code").and_then(|code| code.as_string());
    let known = ErrorKind::ALL.iter().copied().find(|kind| Some(kind.code()) == code.as_deref());
    let error = Error::new(known.unwrap_or(kind), text.clone());
    let hint = text_in(&value, "hint");
    let error = match hint.filter(|_| known.is_some()) {
        Some(hint) => error.hint(hint),
        None => error,
    };
    error.with_cause(Rc::new(Thrown { value, text }))
}

/// Converts a value that a tool threw. The model reads its message like a result, so it may be as long.
pub(crate) fn from_tool(value: &JsValue) -> Error {
    Error::new(ErrorKind::Internal, message_of(value, MAX_TOOL_TEXT))
}

/// The name of a thrown value. It tells the kinds of `DOMException` apart. The class cannot, because newer browsers use
/// other classes for some kinds.
pub(crate) fn name_of(thrown: &JsValue) -> String {
    text_in(thrown, "name").unwrap_or_default()
}

/// Converts a value that a model in JavaScript threw. If we know its `code`, the kind is that of the code. Otherwise it
/// is classified like an error of a provider, by the status and the body that HTTP clients keep in their errors.
pub(crate) fn from_model(value: JsValue) -> Error {
    let code = text_in(&value, "code");
    if ErrorKind::ALL.iter().any(|kind| Some(kind.code()) == code.as_deref()) {
        return from_js(value, ErrorKind::ModelFailed);
    }
    let meaning = meaning_of(&value);
    let error = from_js(value, meaning.kind.unwrap_or(ErrorKind::ModelFailed));
    let understood = Error::new(error.kind(), redacted(error.message())).advise(meaning.advice);
    match error.cause() {
        Some(cause) => understood.with_cause(Rc::clone(cause)),
        None => understood,
    }
}

fn meaning_of(value: &JsValue) -> Meaning {
    let number = |name: &str| member(value, name).and_then(|it| it.as_f64());
    let headers = member(value, "responseHeaders");
    let header = |name: &str| headers.as_ref().and_then(|headers| text_in(headers, name));
    let body = member(value, "responseBody").and_then(|body| text_of(&body, MAX_BODY));
    let body = body.filter(|body| !body.is_empty());
    failure::meaning(Failure {
        status: number("statusCode").or_else(|| number("status")).unwrap_or_default() as u16,
        body: &halves::replaced(&body.unwrap_or_else(|| message_of(value, MAX_MESSAGE))),
        retry_after: header("retry-after").as_deref(),
        retry_after_ms: header("retry-after-ms").as_deref(),
        at_ms: js_sys::Date::now(),
        is_large: false,
    })
}

/// An error as a plain object, from which TypeScript makes a `LockgateError`.
pub(crate) fn to_js(error: &Error) -> JsValue {
    let object = Object::new();
    let set = |name: &str, value: JsValue| {
        // Setting a member of a fresh plain object cannot throw.
        let _ = Reflect::set(&object, &name.into(), &value);
    };
    set("code", error.kind().code().into());
    set("message", error.message().into());
    set("retryable", error.kind().is_retryable().into());
    if let Some(hint) = error.hint_text() {
        set("hint", hint.into());
    }
    if let Some(thrown) = error.cause().and_then(|cause| cause.downcast_ref::<Thrown>()) {
        set("cause", thrown.value.clone());
    } else if let Some(second) = error.second() {
        set("cause", to_js(second));
    }
    object.into()
}

/// The message of a thrown value, which need not be an `Error`, with at most `most` characters.
fn message_of(value: &JsValue, most: usize) -> String {
    let message = text_of(value, most)
        .or_else(|| member(value, "message").and_then(|message| text_of(&message, most)));
    message
        .filter(|text| !text.is_empty())
        // A `DOMException` may have only a name.
        .or_else(|| Some(name_of(value)).filter(|name| !name.is_empty()))
        .unwrap_or_else(|| "a value without a message was thrown".into())
}

/// A member, if it is text.
fn text_in(value: &JsValue, name: &str) -> Option<String> {
    member(value, name).and_then(|it| text_of(&it, MAX_MESSAGE))
}

/// The text of a value, if it is text. The middle of a long one is left out before it is copied into the wasm.
fn text_of(value: &JsValue, most: usize) -> Option<String> {
    let text = value.dyn_ref::<JsString>()?;
    let n = text.length() as usize;
    if n <= most {
        return value.as_string();
    }
    let part = |start: usize, end: usize| {
        JsValue::from(text.slice(start as u32, end as u32)).as_string().unwrap_or_default()
    };
    Some([part(0, most / 2), note(n - most), part(n - most / 2, n)].concat())
}

/// A member, if reading it does not throw.
fn member(value: &JsValue, name: &str) -> Option<JsValue> {
    value.is_object().then(|| Reflect::get(value, &name.into()).ok()).flatten()
}
