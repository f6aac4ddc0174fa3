//! JSON Schema of draft 2020-12, as far as tools of language models use it.
//!
//! A schema is compiled once into rules (`compile`), which then check many values (`check`). Keywords that are not
//! supported are listed and refuse nothing. So a refused value is certainly wrong (unless `$schema` names an unknown
//! dialect).

mod alternative;
mod check;
mod compile;
mod keyword;
mod messages;
mod nulls;
mod number;
mod pattern;
mod rule;
mod vocabulary;

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use rule::{Id, Names, ROOT, SchemaRule};

/// A schema, ready to check values.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Vec<SchemaRule>>,
    places: Names,
    unsupported: Vec<String>,
}

impl Schema {
    /// Compiles a schema. The error for an invalid schema says where it is invalid and what is expected.
    pub fn compile(schema: &Value) -> Result<Schema, Error> {
        compile::Compiler::new(schema).compile()
    }

    /// Pointers to keywords that are not enforced, such as `#/properties/a/$dynamicRef`.
    ///
    /// Unknown keywords are listed too, because they may be typing errors; keywords named `x-…` are not.
    pub fn unsupported(&self) -> &[String] {
        &self.unsupported
    }

    /// Checks a value. The error lists the first twenty problems.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Problem>> {
        check::Check::new(self).run(value)
    }

    /// The value without the nulls of optional properties that may not be null.
    ///
    /// Models often write null for "not given". Such a value does not fit the schema, so a value that fits is never
    /// changed.
    pub fn without_nulls(&self, mut value: Value) -> Value {
        nulls::remove(self, &[ROOT], &mut value, 0);
        value
    }

    fn rules(&self, id: Id) -> &[SchemaRule] {
        self.nodes.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The target of a reference: a pointer such as `/$defs/a`, or an anchor.
    fn place(&self, fragment: &str) -> Option<Id> {
        self.places.get(fragment)
    }
}

/// One problem of a value, in words with which a model can correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path to it, such as `items[2].name`; empty for the whole value.
    pub path: String,
    /// The problem.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = if self.path.is_empty() { "" } else { ": " };
        write!(out, "{}{joint}{}", self.path, self.message)
    }
}
