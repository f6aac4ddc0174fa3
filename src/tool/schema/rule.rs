//! What a compiled schema is made of.

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::json::Object;

/// A subschema, as its index among all of them.
pub(super) type Id = usize;

/// Subschemas by name, or by place. It is a JSON object of numbers, because a map of another type
/// would bring its own copy of the map's code.
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

/// The schema as a whole.
pub(super) const ROOT: Id = 0;

/// One thing that a value must be. A rule about lists has nothing to say about numbers.
#[derive(Debug)]
pub(super) enum Rule {
    /// Nothing fits.
    Never,
    /// Is of one of these kinds.
    Type(Vec<Kind>),
    /// Is one of these values.
    Enum(Vec<Value>),
    /// A number within a bound.
    Bound(Bound, Number),
    /// A number that is a multiple of this one.
    MultipleOf(Number),
    /// Has at least so many of a part.
    AtLeast(Part, u64),
    /// Has at most so many of a part.
    AtMost(Part, u64),
    /// A string in which this is found, and how it was written.
    Pattern(Regex, String),
    /// An array without equal items.
    Unique,
    /// What each item is.
    Items(Items),
    /// How many items are so.
    Contains(Contains),
    /// What each property is.
    Members(Members),
    /// Has these properties.
    Required(Vec<String>),
    /// What each property's name is.
    PropertyNames(Id),
    /// If it has the one, it has the others.
    DependentRequired(Vec<(String, Vec<String>)>),
    /// If it has the property, it is also this.
    DependentSchemas(Names),
    /// Fits all of them.
    AllOf(Vec<Id>),
    /// Fits some of them.
    AnyOf(Vec<Id>),
    /// Fits one of them.
    OneOf(Vec<Id>),
    /// Does not fit.
    Not(Id),
    /// Fits the second if it fits the first, else the third.
    If(Id, Option<Id>, Option<Id>),
    /// Fits what is at this place.
    Ref(String),
    /// Something that cannot be told.
    Unsupported,
}

impl Rule {
    /// Whether it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Rule::Items(items) => items.first.is_empty() && items.rest.is_none(),
            Rule::DependentSchemas(names) => names.is_empty(),
            Rule::Members(members) => {
                let is_open = matches!(members.rest, Rest::Open);
                is_open && members.declared.is_empty() && members.patterns.is_empty()
            }
            _ => false,
        }
    }
}

/// The kinds of values that `type` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// The kind that `type` calls so.
    pub(super) fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "string" => Kind::String,
            "array" => Kind::Array,
            "object" => Kind::Object,
            _ => return None,
        })
    }

    /// Whether the value is of this kind; `1.0` is an integer.
    pub(super) fn holds(self, value: &Value) -> bool {
        let is_whole = |number: &Number| number.as_f64().is_some_and(|float| float.fract() == 0.0);
        match (self, value) {
            (Kind::Integer, Value::Number(number)) => !number.is_f64() || is_whole(number),
            (Kind::Null, Value::Null)
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::String, Value::String(_))
            | (Kind::Array, Value::Array(_))
            | (Kind::Object, Value::Object(_)) => true,
            _ => false,
        }
    }
}

/// On which side of a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Least,
    Most,
    Above,
    Below,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Characters,
    Items,
    Properties,
}

impl Part {
    /// How many the value has, if it is of the kind that has them.
    pub(super) fn count(self, value: &Value) -> Option<u64> {
        let n = match self {
            Part::Characters => value.as_str()?.chars().count(),
            Part::Items => value.as_array()?.len(),
            Part::Properties => value.as_object()?.len(),
        };
        Some(n as u64)
    }
}

/// What each item is: the first ones by their place, the others alike.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) first: Vec<Id>,
    pub(super) rest: Option<Id>,
}

impl Items {
    /// What the item at this place must fit.
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

/// What each property is: by its name, by patterns, or neither.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) declared: Names,
    pub(super) patterns: Vec<(Regex, Id)>,
    pub(super) rest: Rest,
}

/// What holds for properties that nothing else names.
#[derive(Debug)]
pub(super) enum Rest {
    Open,
    Closed,
    Fits(Id),
}

impl Members {
    /// What the property of this name must fit; `None` if it must not be there.
    pub(super) fn of(&self, name: &str) -> Option<Vec<Id>> {
        let mut ids = Vec::new();
        ids.extend(self.declared.get(name));
        for (regex, id) in &self.patterns {
            ids.extend(regex.is_match(name).then_some(*id));
        }
        match self.rest {
            _ if !ids.is_empty() => Some(ids),
            Rest::Open => Some(ids),
            Rest::Fits(id) => Some(vec![id]),
            Rest::Closed => None,
        }
    }
}
