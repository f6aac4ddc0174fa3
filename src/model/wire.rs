//! What the dialects share when they write a request.

use serde_json::Value;

use crate::json::Object;
use crate::message::{Block, MediaKind, ResultState, Source, ToolResult};

/// A value on its way into an object. Making it is cheap where it is written down, since it is written down so often:
/// the work is all in [`object`] and [`put`].
pub(super) enum Part<'a> {
    Text(&'a str),
    Value(Value),
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Part::Text(text)
    }
}

impl From<String> for Part<'_> {
    fn from(text: String) -> Self {
        Part::Value(Value::String(text))
    }
}

impl From<Value> for Part<'_> {
    fn from(value: Value) -> Self {
        Part::Value(value)
    }
}

impl From<Vec<Value>> for Part<'_> {
    fn from(list: Vec<Value>) -> Self {
        Part::Value(Value::Array(list))
    }
}

impl From<bool> for Part<'_> {
    fn from(flag: bool) -> Self {
        Part::Value(Value::Bool(flag))
    }
}

impl From<u64> for Part<'_> {
    fn from(number: u64) -> Self {
        Part::Value(Value::Number(number.into()))
    }
}

/// An object of these members.
#[inline(never)]
pub(super) fn object(members: &mut [(&str, Part<'_>)]) -> Value {
    let mut object = Object::new();
    for (name, part) in members {
        put(&mut object, name, std::mem::replace(part, Part::Text("")));
    }
    Value::Object(object)
}

/// Puts a member in its place.
#[inline(never)]
pub(super) fn put(object: &mut Object, name: &str, part: Part<'_>) {
    let value = match part {
        Part::Text(text) => Value::String(text.to_owned()),
        Part::Value(value) => value,
    };
    object.insert(name.to_owned(), value);
}

/// Puts a member into an object among values.
#[inline(never)]
pub(super) fn set(object: &mut Value, name: &str, part: Part<'_>) {
    if let Some(members) = object.as_object_mut() {
        put(members, name, part);
    }
}

/// A text block of the form that two dialects share.
pub(super) fn text_part(text: &str) -> Value {
    object(&mut [("type", "text".into()), ("text", text.into())])
}

/// A tool's name as every provider takes it: letters, digits, `_` and `-`, at most 64, a letter first.
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

/// The words of a tool's result; one that failed without words still says so.
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

/// The address of a file, also of one that is at hand.
pub(super) fn data_url(source: &Source) -> String {
    match source {
        Source::Url { url, .. } => url.clone(),
        Source::Base64 { media_type, data } => ["data:", media_type, ";base64,", data].concat(),
    }
}

/// What stands in place of a file that a model cannot take.
pub(super) fn omitted(kind: MediaKind, name: Option<&str>) -> String {
    let what = match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::File => "file",
    };
    ["[", what, " ", name.unwrap_or_default(), " left out: this model does not take it]"].concat()
}

/// A number among the options of a request.
pub(super) fn option(generate: &Value, name: &str) -> Option<Value> {
    generate.get(name).filter(|value| !value.is_null()).cloned()
}

/// Puts options in their place, those that are given.
pub(super) fn copy_options(generate: &Value, names: &[(&str, &str)], into: &mut Object) {
    for (ours, theirs) in names {
        if let Some(value) = option(generate, ours) {
            into.insert((*theirs).to_owned(), value);
        }
    }
}

/// Which tools the model may, must or must not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    Auto,
    None,
    Required,
    Named(&'a str),
}

impl<'a> Choice<'a> {
    /// What the options say.
    pub(super) fn of(generate: &'a Value) -> Option<Choice<'a>> {
        let choice = generate.get("toolChoice")?;
        match choice.as_str() {
            Some("auto") => Some(Choice::Auto),
            Some("none") => Some(Choice::None),
            Some("required") => Some(Choice::Required),
            _ => choice.get("name").and_then(Value::as_str).map(Choice::Named),
        }
    }
}

/// Members that a user adds to the body, over ours; but the conversation is ours.
pub(super) fn add_extra(generate: &Value, body: &mut Object) {
    let Some(extra) = generate.get("extra").and_then(Value::as_object) else { return };
    for (name, value) in extra {
        if !matches!(name.as_str(), "messages" | "contents" | "stream") {
            body.insert(name.clone(), value.clone());
        }
    }
}
