//! The arguments of a tool call that Gemini sends in pieces: each piece has a value and the JSON path of its place.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Object, halves};
use crate::model::reply::{Fragment, ReplyDeltas, text_in};

/// A tool call whose arguments are not complete yet.
#[derive(Debug)]
pub(super) struct OpenCall {
    number: u64,
    arguments: Value,
    /// The path of a text that the next piece continues.
    open_text: Option<String>,
}

impl OpenCall {
    /// A call with this number in its reply.
    pub(super) fn new(number: u64) -> OpenCall {
        OpenCall { number, arguments: Value::Object(Object::new()), open_text: None }
    }

    /// Adds arguments that arrive whole.
    pub(super) fn merge(&mut self, whole: &Object) {
        if let Some(members) = self.arguments.as_object_mut() {
            members.extend(whole.clone());
        }
    }

    /// The number of the call in its reply.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Puts a piece into its place.
    pub(super) fn add(&mut self, piece: &Value) -> Result<()> {
        let path = text_in(piece, "jsonPath").unwrap_or_default();
        let steps = steps_of(path).filter(|steps| steps.len() <= json::DEEPEST);
        let place = steps.and_then(|steps| place_at(&mut self.arguments, &steps));
        let (Some(place), Some(value)) = (place, value_of(piece)) else {
            return Err(unreadable("has a piece without a place or a value"));
        };
        match (place, value) {
            (Value::String(text), Value::String(more))
                if self.open_text.as_deref() == Some(path) =>
            {
                append(text, &more);
            }
            (place, value) => *place = value,
        }
        let continues = piece.get("willContinue") == Some(&Value::Bool(true));
        self.open_text = continues.then(|| path.to_owned());
        Ok(())
    }

    /// Hands over the complete arguments.
    pub(super) fn finish(self, reply: &mut ReplyDeltas) {
        let arguments = halves::without_marks(&self.arguments.to_string());
        reply.call(self.number, Fragment { arguments, ..Fragment::default() }, Vec::new());
    }

    /// Marks the arguments as cut off, so that the call does not run.
    pub(super) fn cut_off(self, reply: &mut ReplyDeltas) {
        let arguments = String::from("{");
        reply.call(self.number, Fragment { arguments, ..Fragment::default() }, Vec::new());
    }
}

/// The error for a tool call that cannot be put together.
pub(super) fn unreadable(what: &str) -> Error {
    let message = format!("a tool call of the model {what}");
    Error::new(ErrorKind::ModelTruncated, message).hint("ask again")
}

fn value_of(piece: &Value) -> Option<Value> {
    let names = ["stringValue", "numberValue", "boolValue"];
    let value = names.iter().find_map(|name| piece.get(*name)).cloned();
    value.or_else(|| piece.get("nullValue").map(|_| Value::Null))
}

/// Appends a piece of a text. A character may come as two halves, one in each piece.
fn append(text: &mut String, more: &str) {
    let high = text.chars().next_back().and_then(halves::mark_of);
    let mut rest = more.chars();
    let low = rest.next().and_then(halves::mark_of);
    match high.zip(low).and_then(|(high, low)| halves::joined(high, low)) {
        Some(letter) => {
            text.pop();
            text.push(letter);
            text.push_str(rest.as_str());
        }
        None => text.push_str(more),
    }
}

enum PathStep {
    Name(String),
    Index(usize),
}

/// The steps of a path such as `$.list[0]['a name']`. `None`: it is not such a path.
fn steps_of(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, next) = after.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
            steps.push(PathStep::Name(name.to_owned()));
            rest = next;
            continue;
        }
        let inside = rest.strip_prefix('[')?;
        let quote = inside.chars().next()?;
        if matches!(quote, '\'' | '"') {
            let (name, next) = quoted(inside.strip_prefix(quote)?, quote)?;
            steps.push(PathStep::Name(name));
            rest = next.strip_prefix(']')?;
        } else {
            let (index, next) = inside.split_once(']')?;
            steps.push(PathStep::Index(index.parse().ok()?));
            rest = next;
        }
    }
    Some(steps)
}

/// The text up to a closing quote, and what follows the quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '\\' => name.push(letters.next()?),
            letter if letter == quote => return Some((name, letters.as_str())),
            letter => name.push(letter),
        }
    }
}

/// The place at the end of a path. Objects and items on the way are made. `None`: another value is in the way, or an item
/// would leave a gap in its list.
fn place_at<'a>(root: &'a mut Value, steps: &[PathStep]) -> Option<&'a mut Value> {
    let mut at = root;
    for step in steps {
        at = match step {
            PathStep::Name(name) => {
                if at.is_null() {
                    *at = Value::Object(Object::new());
                }
                at.as_object_mut()?.entry(name.clone()).or_insert(Value::Null)
            }
            PathStep::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let items = at.as_array_mut()?;
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index)?
            }
        };
    }
    Some(at)
}
