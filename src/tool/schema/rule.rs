//! The rules of a compiled schema.

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::json::Object;

/// A subschema, as its index among all of them.
pub(super) type Id = usize;

/// Subschemas by name or pointer. It is a JSON object of numbers, because another type of map would add another copy of
/// its code to the wasm.
#[derive(Debug, Default)]
pub(super) struct Names(Object);

impl Names {
    pub(super) fn insert(&mut self, name: &str, id: Id) {
        self.0.insert(name.to_owned(), id.into());
    }

    pub(super) fn get(&self, name: &str) -> Option<Id> {
        self.0.get(name).and_then(Value::as_u64).map(|id| id as Id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The whole schema.
pub(super) const ROOT: Id = 0;

/// One restriction of a value. A rule about lists does not restrict numbers.
#[derive(Debug)]
pub(super) enum SchemaRule {
    /// Nothing fits.
    Never,
    /// The value has one of these types.
    Type(Vec<JsonType>),
    /// The value is one of these.
    Enum(Vec<Value>),
    /// A number within a bound.
    Bound(Bound, Number),
    /// A number that is a multiple of this one.
    MultipleOf(Number),
    /// The value has at least this many items, characters or properties.
    AtLeast(CountedPart, u64),
    /// The value has at most this many items, characters or properties.
    AtMost(CountedPart, u64),
    /// A string in which the pattern is found. The text is the pattern as it was written.
    Pattern(Regex, String),
    /// An array without equal items.
    Unique,
    /// The schemas of items.
    Items(Items),
    /// How many items must fit a schema.
    Contains(Contains),
    /// The schemas of properties.
    Members(MembersRule),
    /// An object that has these properties.
    Required(Vec<String>),
    /// The schema of the names of properties.
    PropertyNames(Id),
    /// If the object has the property, it must have the others too.
    DependentRequired(Vec<(String, Vec<String>)>),
    /// If the object has the property, it must fit this schema.
    DependentSchemas(Names),
    /// The value fits all of these schemas.
    AllOf(Vec<Id>),
    /// The value fits at least one of these schemas.
    AnyOf(Vec<Id>),
    /// The value fits exactly one of these schemas.
    OneOf(Vec<Id>),
    /// The value does not fit this schema.
    Not(Id),
    /// If the value fits the first schema, it must fit the second, otherwise the third.
    If(Id, Option<Id>, Option<Id>),
    /// The value fits the schema at this place.
    Ref(String),
    /// A restriction that is not supported.
    Unsupported,
}

impl SchemaRule {
    /// Whether the rule restricts nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            SchemaRule::Items(items) => items.first.is_empty() && items.rest.is_none(),
            SchemaRule::DependentSchemas(names) => names.is_empty(),
            SchemaRule::Members(members) => {
                let is_open = matches!(members.rest, OtherMembers::Open);
                is_open && members.declared.is_empty() && members.patterns.is_empty()
            }
            _ => false,
        }
    }
}

/// The kinds of values that `type` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    /// The kind with this name in `type`.
    pub(super) fn named(name: &str) -> Option<JsonType> {
        Some(match name {
            "null" => JsonType::Null,
            "boolean" => JsonType::Boolean,
            "integer" => JsonType::Integer,
            "number" => JsonType::Number,
            "string" => JsonType::String,
            "array" => JsonType::Array,
            "object" => JsonType::Object,
            _ => return None,
        })
    }

    /// Whether the value is of this kind; `1.0` is an integer.
    pub(super) fn holds(self, value: &Value) -> bool {
        let is_whole = |number: &Number| number.as_f64().is_some_and(|float| float.fract() == 0.0);
        match (self, value) {
            (JsonType::Integer, Value::Number(number)) => !number.is_f64() || is_whole(number),
            (JsonType::Null, Value::Null)
            | (JsonType::Boolean, Value::Bool(_))
            | (JsonType::Number, Value::Number(_))
            | (JsonType::String, Value::String(_))
            | (JsonType::Array, Value::Array(_))
            | (JsonType::Object, Value::Object(_)) => true,
            _ => false,
        }
    }
}

/// The side of a bound.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Least,
    Most,
    Above,
    Below,
}

/// The parts that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum CountedPart {
    Characters,
    Items,
    Properties,
}

impl CountedPart {
    /// How many of these parts a value has; `None` if values of its type have no such parts.
    pub(super) fn count(self, value: &Value) -> Option<u64> {
        let n = match self {
            CountedPart::Characters => value.as_str()?.chars().count(),
            CountedPart::Items => value.as_array()?.len(),
            CountedPart::Properties => value.as_object()?.len(),
        };
        Some(n as u64)
    }
}

/// The schemas of items: one for each of the first items, and one for the rest.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) first: Vec<Id>,
    pub(super) rest: Option<Id>,
}

impl Items {
    /// The schema of the item at this index.
    pub(super) fn at(&self, index: usize) -> Option<Id> {
        self.first.get(index).copied().or(self.rest)
    }
}

/// How many items must fit.
#[derive(Debug)]
pub(super) struct Contains {
    pub(super) id: Id,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The schemas of properties: by name, by pattern, and for the rest.
#[derive(Debug)]
pub(super) struct MembersRule {
    pub(super) declared: Names,
    pub(super) patterns: Vec<(Regex, Id)>,
    pub(super) rest: OtherMembers,
}

/// The rule for properties that no other schema covers.
#[derive(Debug)]
pub(super) enum OtherMembers {
    Open,
    Closed,
    Fits(Id),
}

impl MembersRule {
    /// The schemas of a property; `None` if the property is not allowed.
    pub(super) fn of(&self, name: &str) -> Option<Vec<Id>> {
        let mut ids = Vec::new();
        ids.extend(self.declared.get(name));
        for (regex, id) in &self.patterns {
            ids.extend(regex.is_match(name).then_some(*id));
        }
        match self.rest {
            _ if !ids.is_empty() => Some(ids),
            OtherMembers::Open => Some(ids),
            OtherMembers::Fits(id) => Some(vec![id]),
            OtherMembers::Closed => None,
        }
    }
}
