//! Reads tagged JSON by hand, with the path in every error.
//!
//! Derived `Deserialize` code for our unions would be much larger, and its errors would say less.

pub mod halves;
mod write;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::error::ErrorKind;
pub use write::pad;

/// A JSON object's members.
pub type Object = Map<String, Value>;

/// An object with one member. (`Object::from_iter` sorts its members first, which makes the wasm larger.)
pub fn object_of(name: &str, value: Value) -> Object {
    let mut object = Object::new();
    object.insert(name.to_owned(), value);
    object
}

/// A value that was read, or an error that says where and why it could not be read.
pub type Read<T> = Result<T, Misread>;

/// A function that reads one value.
pub type Reader<T> = fn(&Value) -> Read<T>;

/// The place where a document is not as expected. It has the size of one pointer, so that each `?` adds little code.
#[derive(Debug, PartialEq)]
pub struct Misread(Box<Complaint>);

#[derive(Debug, PartialEq)]
struct Complaint {
    path: String,
    expected: String,
}

impl Misread {
    /// An error about the current value.
    #[cold]
    #[inline(never)]
    pub fn new(expected: &str) -> Self {
        Misread(Box::new(Complaint { path: String::new(), expected: expected.to_owned() }))
    }

    /// The same error, with the name of the object's member before the path.
    #[cold]
    #[inline(never)]
    pub fn under(mut self, step: &str) -> Self {
        let joint = if self.0.path.is_empty() || self.0.path.starts_with('[') { "" } else { "." };
        self.0.path = format!("{step}{joint}{}", self.0.path);
        self
    }

    /// Converts it to an [`Error`] about `what`.
    #[cold]
    #[inline(never)]
    pub fn into_error(self, kind: ErrorKind, what: &str) -> Error {
        let place =
            if self.0.path.is_empty() { String::new() } else { format!(" at {}", self.0.path) };
        Error::new(kind, format!("{what}{place}: expected {}", self.0.expected))
    }
}

/// The members of an object, read by name.
pub struct Fields<'a>(&'a Object);

impl<'a> Fields<'a> {
    /// The members of `value`, which must be an object.
    #[inline(never)]
    pub fn of(value: &'a Value) -> Read<Self> {
        value.as_object().map(Fields).ok_or_else(|| Misread::new("an object"))
    }

    /// A member that must be there.
    pub fn required<T>(&self, name: &str, read: Reader<T>) -> Read<T> {
        let value = self.0.get(name).unwrap_or(&Value::Null);
        read(value).map_err(|misread| misread.under(name))
    }

    /// A member that may be absent or null.
    pub fn optional<T>(&self, name: &str, read: Reader<T>) -> Read<Option<T>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).map_err(|misread| misread.under(name)),
        }
    }

    /// A member that has a default.
    pub fn or_default<T: Default>(&self, name: &str, read: Reader<T>) -> Read<T> {
        self.optional(name, read).map(Option::unwrap_or_default)
    }

    /// The member, if it exists and is not null.
    #[inline(never)]
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// The members that are not in `known`. They are kept, so that reading and writing an object loses nothing.
    #[inline(never)]
    pub fn rest(&self, known: &[&str]) -> Object {
        let mut rest = Object::new();
        for (name, value) in self.0.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            rest.insert(name.clone(), value.clone());
        }
        rest
    }
}

/// A string.
#[inline(never)]
pub fn text(value: &Value) -> Read<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| Misread::new("a string"))
}

/// A whole number that is not negative. `3.0` counts as a whole number.
#[inline(never)]
pub fn count(value: &Value) -> Read<u64> {
    let float =
        value.as_f64().filter(|number| *number >= 0.0 && *number < 9.0e15 && number.fract() == 0.0);
    let whole = value.as_u64().or_else(|| float.map(|number| number as u64));
    whole.ok_or_else(|| Misread::new("a whole number that is not negative"))
}

/// The value of an integer that a double cannot hold exactly.
#[inline(never)]
pub fn beyond_doubles(number: &serde_json::Number) -> Option<i128> {
    const SAFE: i128 = (1 << 53) - 1;
    let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    integer.filter(|integer| !(-SAFE..=SAFE).contains(integer))
}

/// Undoes rounding in `changed`: a number that equals the number of `original` after rounding to a double becomes exact
/// again.
pub fn unrounded(original: &Value, changed: &mut Value) {
    match (original, changed) {
        (Value::Number(exact), Value::Number(number))
            if beyond_doubles(exact).is_some() && exact.as_f64() == number.as_f64() =>
        {
            *number = exact.clone();
        }
        (Value::Array(exact), Value::Array(items)) => {
            exact.iter().zip(items).for_each(|(exact, item)| unrounded(exact, item));
        }
        (Value::Object(exact), Value::Object(members)) => {
            for (name, member) in members {
                exact.get(name).into_iter().for_each(|exact| unrounded(exact, member));
            }
        }
        _ => {}
    }
}

/// Whether two values are equal, if numbers are compared as JavaScript reads them: `1.0` equals `1`.
pub fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_alike(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in =
                |(name, a): (&String, &Value)| other.get(name).is_some_and(|b| is_alike(a, b));
            one.len() == other.len() && one.iter().all(is_in)
        }
        _ => one == other,
    }
}

/// A number.
#[inline(never)]
pub fn number(value: &Value) -> Read<f64> {
    value.as_f64().ok_or_else(|| Misread::new("a number"))
}

/// A boolean.
#[inline(never)]
pub fn boolean(value: &Value) -> Read<bool> {
    value.as_bool().ok_or_else(|| Misread::new("true or false"))
}

/// An object, unchanged.
#[inline(never)]
pub fn object(value: &Value) -> Read<Object> {
    value.as_object().cloned().ok_or_else(|| Misread::new("an object"))
}

/// Any value, unchanged.
#[inline(never)]
pub fn any(value: &Value) -> Read<Value> {
    Ok(value.clone())
}

/// A list of strings.
#[inline(never)]
pub fn texts(value: &Value) -> Read<Vec<String>> {
    list(value, text)
}

/// A list; `read` reads each item. The path in an error names the item.
pub fn list<T>(value: &Value, read: Reader<T>) -> Read<Vec<T>> {
    let items = value.as_array().ok_or_else(|| Misread::new("a list"))?;
    let place =
        |(index, item)| read(item).map_err(|misread: Misread| misread.under(&format!("[{index}]")));
    items.iter().enumerate().map(place).collect()
}

/// The deepest nesting of a value from outside. Stored records hold such values a few levels deeper, and the store
/// reads records up to a depth of 128.
pub const DEEPEST: usize = 100;

/// The deepest nesting of an imported session document, which contains such values.
pub const DEEPEST_DOCUMENT: usize = 115;

/// Parses JSON from outside. The error says what is wrong. Every value accepted here can be read back from the store.
pub fn foreign(bytes: &[u8], deepest: usize) -> Result<Value, String> {
    let value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if is_deeper(&value, deepest) {
        return Err(format!("it is nested more than {deepest} deep"));
    }
    Ok(value)
}

fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(members) => {
            most == 0 || members.values().any(|member| is_deeper(member, most - 1))
        }
        _ => false,
    }
}

/// Parses a JSON document; `what` names the document in the error.
pub fn parse(bytes: &[u8], what: &str) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        Error::new(ErrorKind::StoreCorrupt, format!("{what} is not JSON at {place}"))
    })
}

/// Converts `value` to JSON. Our own types have string keys only, so this cannot fail for them.
pub fn to_value<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Converts a value of a large type to JSON, through its text: the code that writes the text is there anyway.
pub fn by_text<T: serde::Serialize>(value: &T) -> Value {
    serde_json::from_slice(&to_bytes(value)).unwrap_or(Value::Null)
}

/// The text of `value` as JSON.
pub fn to_text<T: serde::Serialize>(value: &T) -> String {
    write::text_of(value)
}

/// The bytes of `value` as JSON.
pub fn to_bytes<T: serde::Serialize>(value: &T) -> Vec<u8> {
    write::text_of(value).into_bytes()
}
