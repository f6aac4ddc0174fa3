//! Compiles a schema into rules and resolves its references.

use serde_json::Value;

use super::Schema;
use super::rule::{Id, Names, SchemaRule};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Object;

const SCHEMA: (&str, &str) =
    ("a schema", "a schema is an object such as {\"type\": \"string\"}, or true or false");
const TARGET: (&str, &str) =
    ("a reference to a place that exists", "put the target under $defs and write \"#/$defs/name\"");

/// A schema that is being compiled.
///
/// It uses a queue instead of recursion, so that schemas may have any depth.
pub(super) struct Compiler<'a> {
    root: &'a Value,
    /// Subschemas that are still to be read, in the order of ids.
    queue: Vec<(String, &'a Value)>,
    nodes: Vec<Vec<SchemaRule>>,
    /// The rules of the schema object that is being read.
    made: Vec<SchemaRule>,
    /// Subschemas by pointer (`/$defs/a`, empty for the root) and by anchor (never with a slash).
    places: Names,
    /// Anchors that are referred to, and from where.
    wanted: Vec<(String, String)>,
    unsupported: Vec<String>,
}

/// A schema object, and its JSON pointer.
pub(super) struct SchemaPlace<'a> {
    pub(super) id: Id,
    pub(super) at: String,
    pub(super) object: &'a Object,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Compiler {
            root,
            queue: Vec::new(),
            nodes: Vec::new(),
            made: Vec::new(),
            places: Names::default(),
            wanted: Vec::new(),
            unsupported: Vec::new(),
        }
    }

    pub(super) fn compile(mut self) -> Result<Schema> {
        self.node(String::new(), self.root);
        while let Some((at, value)) = self.queue.get_mut(self.nodes.len()) {
            let (id, at) = (self.nodes.len(), std::mem::take(at));
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => self.add(Some(SchemaRule::Never)),
                Value::Object(object) => self.read(&SchemaPlace { id, at, object })?,
                _ => return Err(malformed(&at, SCHEMA)),
            }
            self.nodes.push(std::mem::take(&mut self.made));
        }
        for (anchor, at) in &self.wanted {
            self.places.get(anchor).ok_or_else(|| malformed(at, TARGET))?;
        }
        Ok(Schema { nodes: self.nodes, places: self.places, unsupported: self.unsupported })
    }

    /// The subschema at a pointer. It is read later if it was not read yet.
    fn node(&mut self, at: String, value: &'a Value) -> Id {
        if let Some(id) = self.places.get(&at) {
            return id;
        }
        let id = self.queue.len();
        self.places.insert(&at, id);
        self.queue.push((at, value));
        id
    }

    /// The schema under a keyword.
    pub(super) fn child(&mut self, place: &SchemaPlace<'a>, keyword: &str) -> Option<Id> {
        let value = place.get(keyword)?;
        Some(self.node(place.under(keyword), value))
    }

    /// The schemas in the list under a keyword.
    pub(super) fn children(&mut self, place: &SchemaPlace<'a>, keyword: &str) -> Option<Vec<Id>> {
        let mut ids = Vec::new();
        for (index, item) in place.get(keyword)?.as_array()?.iter().enumerate() {
            ids.push(self.node(under(&place.under(keyword), &index.to_string()), item));
        }
        Some(ids)
    }

    /// The schemas by name under a keyword; empty if the keyword is missing.
    pub(super) fn named(&mut self, place: &SchemaPlace<'a>, keyword: &str) -> Names {
        let mut names = Names::default();
        for (name, value) in place.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            names.insert(name, self.node(under(&place.under(keyword), name), value));
        }
        names
    }

    /// Gives the schema at this pointer an anchor.
    pub(super) fn anchor(&mut self, place: &SchemaPlace<'a>, name: &str) {
        if !self.is_embedded(&place.at) {
            self.places.insert(name, place.id);
        }
    }

    /// Follows `$ref`. A target outside of this document is not supported.
    pub(super) fn reference(&mut self, place: &SchemaPlace<'a>) -> Result<()> {
        let Some(target) = place.text("$ref") else { return Ok(()) };
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let (document, fragment) = target.split_once('#').unwrap_or((target, ""));
        let is_own = document.is_empty() || document == own.strip_suffix('#').unwrap_or(own);
        let is_here = is_own && !self.is_embedded(&place.at);
        let at = place.under("$ref");
        let Some(fragment) = decoded(fragment).filter(|_| is_here) else {
            self.skip(&at);
            return Ok(());
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            let value = lookup(self.root, &fragment).ok_or_else(|| malformed(&at, TARGET))?;
            self.node(fragment.clone(), value);
        } else {
            self.wanted.push((fragment.clone(), at));
        }
        self.add(Some(SchemaRule::Ref(fragment)));
        Ok(())
    }

    /// Whether a pointer is inside a schema with its own `$id`. References in there are relative to it.
    fn is_embedded(&self, at: &str) -> bool {
        let mut value = self.root;
        at.split('/').skip(1).any(|token| {
            value = member(value, token).unwrap_or(&Value::Null);
            value.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'))
        })
    }

    /// Lists a pointer as not supported.
    pub(super) fn report(&mut self, at: &str) {
        self.unsupported.push(format!("#{at}"));
    }

    /// Lists a keyword as not supported, and adds the rule `Unsupported` for it.
    pub(super) fn skip(&mut self, at: &str) {
        self.report(at);
        self.add(Some(SchemaRule::Unsupported));
    }

    /// Adds a rule to the schema object that is being read, if the rule restricts anything.
    pub(super) fn add(&mut self, rule: Option<SchemaRule>) {
        self.made.extend(rule.filter(|rule| !rule.is_empty()));
    }
}

impl<'a> SchemaPlace<'a> {
    /// The value of a keyword.
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.object.get(keyword)
    }

    /// The value of a keyword that is a text.
    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword).and_then(Value::as_str)
    }

    /// The pointer to a keyword.
    pub(super) fn under(&self, keyword: &str) -> String {
        under(&self.at, keyword)
    }
}

/// The pointer to a member of the value at a pointer.
pub(super) fn under(at: &str, name: &str) -> String {
    let mut pointer = format!("{at}/");
    for char in name.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
    pointer
}

/// The value at a pointer.
fn lookup<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer.split('/').skip(1).try_fold(root, member)
}

/// The member or item that a part of a pointer names.
fn member<'v>(value: &'v Value, token: &str) -> Option<&'v Value> {
    let Value::Object(object) = value else { return value.get(token.parse::<usize>().ok()?) };
    let mut name = String::new();
    let mut chars = token.chars();
    while let Some(char) = chars.next() {
        name.push(match char {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    object.get(&name)
}

/// The error for an invalid schema: what is expected, and where.
#[cold]
pub(super) fn malformed(at: &str, (wanted, hint): (&str, &str)) -> Error {
    let message = format!("the schema at #{at} must be {wanted}");
    Error::new(ErrorKind::Options, message).hint(hint)
}

/// A fragment after percent-decoding; `None` if the result is not UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
