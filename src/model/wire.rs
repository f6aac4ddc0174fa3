//! Functions with which all dialects write requests.

use serde_json::Value;

use crate::json::Object;
use crate::message::{Block, MediaKind, ResultState, Source, ToolResult};

/// A value for a member of an object. It is created in many places, so creating it must take little code: the work is
/// done in [`object`] and [`put`].
pub(super) enum JsonPart<'a> {
    Text(&'a str),
    Value(Value),
}

impl<'a> From<&'a str> for JsonPart<'a> {
    fn from(text: &'a str) -> Self {
        JsonPart::Text(text)
    }
}

impl From<String> for JsonPart<'_> {
    fn from(text: String) -> Self {
        JsonPart::Value(Value::String(text))
    }
}

impl From<Value> for JsonPart<'_> {
    fn from(value: Value) -> Self {
        JsonPart::Value(value)
    }
}

impl From<Vec<Value>> for JsonPart<'_> {
    fn from(list: Vec<Value>) -> Self {
        JsonPart::Value(Value::Array(list))
    }
}

impl From<bool> for JsonPart<'_> {
    fn from(flag: bool) -> Self {
        JsonPart::Value(Value::Bool(flag))
    }
}

impl From<u64> for JsonPart<'_> {
    fn from(number: u64) -> Self {
        JsonPart::Value(Value::Number(number.into()))
    }
}

/// An object with these members.
#[inline(never)]
pub(super) fn object(members: &mut [(&str, JsonPart<'_>)]) -> Value {
    let mut object = Object::new();
    for (name, part) in members {
        put(&mut object, name, std::mem::replace(part, JsonPart::Text("")));
    }
    Value::Object(object)
}

/// Puts a member into an object.
#[inline(never)]
pub(super) fn put(object: &mut Object, name: &str, part: JsonPart<'_>) {
    let value = match part {
        JsonPart::Text(text) => Value::String(text.to_owned()),
        JsonPart::Value(value) => value,
    };
    object.insert(name.to_owned(), value);
}

/// Puts a member into a value that is an object.
#[inline(never)]
pub(super) fn set(object: &mut Value, name: &str, part: JsonPart<'_>) {
    if let Some(members) = object.as_object_mut() {
        put(members, name, part);
    }
}

/// A text block of the form that two dialects share.
pub(super) fn text_part(text: &str) -> Value {
    object(&mut [("type", "text".into()), ("text", text.into())])
}

/// The name of a tool as every provider accepts it: letters, digits, `_` and `-`, at most 64, not beginning with a digit.
pub fn tool_name(name: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let mut wire = String::new();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        wire.push('_');
    }
    wire.extend(name.chars().map(|it| if fits(it) { it } else { '_' }));
    wire.truncate(64);
    wire
}

/// The text of a tool result. An empty result gets a text that says so.
pub(super) fn result_text(result: &ToolResult) -> String {
    let mut text = Block::text_of(&result.output);
    if text.trim().is_empty() {
        text = match result.state {
            ResultState::Success => "(no output)",
            _ => "(it failed and said nothing)",
        }
        .to_owned();
    }
    text
}

/// The URL of a file, or its data as a data URL.
pub(super) fn data_url(source: &Source) -> String {
    match source {
        Source::Url { url, .. } => url.clone(),
        Source::Base64 { media_type, data } => ["data:", media_type, ";base64,", data].concat(),
    }
}

/// The text that replaces a file that the model does not accept.
pub(super) fn omitted(kind: MediaKind, name: Option<&str>) -> String {
    let what = match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::File => "file",
    };
    ["[", what, " ", name.unwrap_or_default(), " left out: this model does not take it]"].concat()
}

/// An option of a request, if it is set.
pub(super) fn option(generate: &Value, name: &str) -> Option<Value> {
    generate.get(name).filter(|value| !value.is_null()).cloned()
}

/// Copies the options that are set, under other names.
pub(super) fn copy_options(generate: &Value, names: &[(&str, &str)], into: &mut Object) {
    for (ours, theirs) in names {
        if let Some(value) = option(generate, ours) {
            into.insert((*theirs).to_owned(), value);
        }
    }
}

/// The option `toolChoice`: which tools the model may, must or must not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    Named(&'a str),
}

impl<'a> ToolChoice<'a> {
    /// Reads the option.
    pub(super) fn of(generate: &'a Value) -> Option<ToolChoice<'a>> {
        let choice = generate.get("toolChoice")?;
        match choice.as_str() {
            Some("auto") => Some(ToolChoice::Auto),
            Some("none") => Some(ToolChoice::None),
            Some("required") => Some(ToolChoice::Required),
            _ => choice.get("name").and_then(Value::as_str).map(ToolChoice::Named),
        }
    }
}

/// Adds the members of the option `extra` to the body. They replace ours, except the conversation and `stream`.
pub(super) fn add_extra(generate: &Value, body: &mut Object) {
    let Some(extra) = generate.get("extra").and_then(Value::as_object) else { return };
    for (name, value) in extra {
        if !matches!(name.as_str(), "messages" | "contents" | "stream") {
            body.insert(name.clone(), value.clone());
        }
    }
}
