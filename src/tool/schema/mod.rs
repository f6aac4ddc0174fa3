//! JSON Schema of draft 2020-12, as far as tools of language models use it.
//!
//! A schema is compiled once into rules (`compile`) and then asked about many values (`check`).
//! What is not supported is listed, and only ever lets more values pass: a value that is refused is
//! wrong for certain (unless `$schema` names a dialect that nobody here knows).

mod alternative;
mod check;
mod compile;
mod keyword;
mod nulls;
mod number;
mod pattern;
mod rule;
mod vocabulary;
mod words;

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use rule::{Id, Names, ROOT, Rule};

/// A schema, ready to check values.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Vec<Rule>>,
    places: Names,
    unsupported: Vec<String>,
}

impl Schema {
    /// Understands a schema; one that is malformed is refused, with the place and what it wants.
    pub fn compile(schema: &Value) -> Result<Schema, Error> {
        compile::Compiler::new(schema).compile()
    }

    /// Where the schema says something that is not enforced, such as `#/properties/a/$dynamicRef`.
    ///
    /// Unknown keywords are listed too: a typing error looks like one. Those named `x-…` are not.
    pub fn unsupported(&self) -> &[String] {
        &self.unsupported
    }

    /// Whether the value fits; if not, what is wrong with it, the first twenty problems.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Problem>> {
        check::Check::new(self).run(value)
    }

    /// The value without the nulls of optional properties that may not be null.
    ///
    /// Models often say null for "not given". Such a value is wrong as it stands, so nothing that
    /// fits is ever changed.
    pub fn without_nulls(&self, mut value: Value) -> Value {
        nulls::remove(self, &[ROOT], &mut value, 0);
        value
    }

    fn rules(&self, id: Id) -> &[Rule] {
        self.nodes.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a reference leads to: a pointer such as `/$defs/a`, or an anchor.
    fn place(&self, fragment: &str) -> Option<Id> {
        self.places.get(fragment)
    }
}

/// One thing that is wrong with a value, told so that a model can put it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is, such as `items[2].name`; empty for the value as a whole.
    pub path: String,
    /// What must be otherwise.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = if self.path.is_empty() { "" } else { ": " };
        write!(out, "{}{joint}{}", self.path, self.message)
    }
}
