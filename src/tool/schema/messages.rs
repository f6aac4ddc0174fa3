//! The texts about problems that a model reads.

use serde_json::{Number, Value};

use super::Problem;
use super::rule::{Bound, CountedPart, JsonType, Names};

/// Most alternatives, names or values that are listed.
const MAX_TOLD: usize = 20;

/// Most characters of a value that are shown.
const MAX_VALUE: usize = 80;

/// Most characters about one alternative, which may have alternatives itself.
const MAX_ALTERNATIVE: usize = 300;

pub(super) fn too_deep(max: usize) -> String {
    format!("cannot be checked: more than {max} schemas apply inside each other, or it never ends")
}

pub(super) fn wrong_kind(kinds: &[JsonType], value: &Value) -> String {
    let names = list(&mut kinds.iter().map(|kind| kind_name(*kind).to_owned()), " or ");
    let is_quoted = |text: &str| text.starts_with(['{', '[']) && !kinds.contains(&JsonType::String);
    let advice = match value.as_str() {
        Some(text) if is_quoted(text) => "; give the JSON itself, not a string of it",
        _ => "",
    };
    format!("must be {names}, not {}{advice}", told(value))
}

pub(super) fn wrong_value(allowed: &[Value], value: &Value) -> String {
    let shown =
        list(&mut allowed.iter().map(|allowed| short(&allowed.to_string(), MAX_VALUE)), ", ");
    let one_of = if allowed.len() == 1 { "" } else { "one of " };
    format!("must be {one_of}{shown}, not {}", told(value))
}

pub(super) fn out_of_bound(bound: Bound, limit: &Number, number: &Number) -> String {
    let side = match bound {
        Bound::Least => "at least",
        Bound::Most => "at most",
        Bound::Above => "greater than",
        Bound::Below => "less than",
    };
    format!("must be {side} {limit}, but is {number}")
}

pub(super) fn too_few(part: CountedPart, limit: u64, n: u64) -> String {
    format!("must have at least {}, but has {n}", parts(part, limit))
}

pub(super) fn too_many(part: CountedPart, limit: u64, n: u64) -> String {
    format!("must have at most {}, but has {n}", parts(part, limit))
}

pub(super) fn no_match(pattern: &str, value: &Value) -> String {
    format!("must match the pattern {pattern}, which {} does not", told(value))
}

pub(super) fn few_fit(min: u64, n: u64) -> String {
    format!(
        "must have at least {} matching \"contains\", but has {n}",
        parts(CountedPart::Items, min)
    )
}

pub(super) fn many_fit(max: u64, n: u64) -> String {
    format!(
        "must have at most {} matching \"contains\", but has {n}",
        parts(CountedPart::Items, max)
    )
}

pub(super) fn unknown(names: &[&str], declared: &Names) -> String {
    let known = list(&mut declared.names().map(quoted), ", ");
    let known = if known.is_empty() { String::new() } else { format!("; allowed are {known}") };
    format!("must not have {}{known}", properties(names))
}

pub(super) fn missing(names: &[&str]) -> String {
    format!("must have {}", properties(names))
}

pub(super) fn missing_beside(name: &str, names: &[&str]) -> String {
    format!("must have {}, because it has {}", properties(names), quoted(name))
}

pub(super) fn wrong_name(name: &str, message: &str) -> String {
    format!("has the property {}, but its name {message}", quoted(name))
}

pub(super) fn none_fits(path: &str, problems: &[Problem]) -> String {
    let tell = |(index, problem): (usize, &Problem)| {
        let is_here = problem.path == path;
        let text = if is_here { problem.message.clone() } else { problem.to_string() };
        format!("({}) {}", index + 1, short(&text, MAX_ALTERNATIVE))
    };
    let told = list(&mut problems.iter().enumerate().map(tell), "; ");
    format!("fits none of the {} alternatives: {told}", problems.len())
}

pub(super) fn several_fit(indices: &[usize]) -> String {
    let told = list(&mut indices.iter().map(usize::to_string), ", ");
    format!("must fit exactly one of the alternatives under \"oneOf\", but fits numbers {told}")
}

/// A step of a path to a property: `.name`, or `["a name"]`.
pub(super) fn step(name: &str, is_first: bool) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
    if name.is_empty() || !name.bytes().all(is_word) {
        return format!("[{}]", quoted(name));
    }
    format!("{}{name}", if is_first { "" } else { "." })
}

fn kind_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

fn parts(part: CountedPart, n: u64) -> String {
    let (one, many) = match part {
        CountedPart::Characters => ("character", "characters"),
        CountedPart::Items => ("item", "items"),
        CountedPart::Properties => ("property", "properties"),
    };
    format!("{n} {}", if n == 1 { one } else { many })
}

fn properties(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "the property" } else { "the properties" };
    format!("{noun} {}", list(&mut names.iter().map(|name| quoted(name)), ", "))
}

/// The first items. The `dyn` saves five copies of the function.
fn list(items: &mut dyn Iterator<Item = String>, joint: &str) -> String {
    let mut told = items.next().unwrap_or_default();
    for item in items.take(MAX_TOLD - 1) {
        told = told + joint + &item;
    }
    let n_more = items.count();
    if n_more > 0 {
        told += &format!(" and {n_more} more");
    }
    told
}

fn told(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", short(&quoted(text), MAX_VALUE)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn short(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
