//! The keywords of JSON Schema, and the form of their values.

use serde_json::Value;

use super::rule::JsonType;
use crate::json;

/// The form of the value of a keyword.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Anything; or a schema, which is checked when it is read.
    Any,
    Schemas,
    NamedSchemas,
    Types,
    Values,
    Number,
    /// A number; or a boolean, as in draft 4.
    Bound,
    Positive,
    Count,
    Truth,
    Text,
    Anchor,
    Names,
    NamesByName,
}

/// Keywords that are enforced, or that are only annotations.
const KNOWN: &[(Form, &str)] = &[
    (Form::Any, "additionalProperties const contains else if items not propertyNames then"),
    (Form::Any, "$comment contentEncoding contentMediaType contentSchema default deprecated"),
    (Form::Any, "description examples format readOnly title writeOnly"),
    (Form::Schemas, "allOf anyOf oneOf prefixItems"),
    (Form::NamedSchemas, "$defs definitions dependentSchemas patternProperties properties"),
    (Form::Types, "type"),
    (Form::Values, "enum"),
    (Form::Number, "maximum minimum"),
    (Form::Bound, "exclusiveMaximum exclusiveMinimum"),
    (Form::Positive, "multipleOf"),
    (Form::Count, "maxContains maxItems maxLength maxProperties"),
    (Form::Count, "minContains minItems minLength minProperties"),
    (Form::Truth, "uniqueItems"),
    (Form::Text, "$id $ref $schema pattern"),
    (Form::Anchor, "$anchor $dynamicAnchor"),
    (Form::Names, "required"),
    (Form::NamesByName, "dependentRequired"),
];

/// Keywords that are not enforced; the last three are from older drafts.
const UNSUPPORTED: &str = "$dynamicRef unevaluatedItems unevaluatedProperties $recursiveRef \
    additionalItems dependencies";

/// The drafts in which a keyword with the same name has the same meaning. (Up to draft 7, keywords beside a `$ref` were
/// ignored; here they are enforced.)
const DRAFTS: &str = "draft/2020-12/schema draft/2019-09/schema draft-07/schema draft-06/schema \
    draft-04/schema";

/// How a keyword is handled.
pub(super) enum Standing {
    Known(Form),
    /// An annotation. By the specification it refuses no value.
    Unknown,
    /// A keyword that may refuse values, but is not supported.
    Unsupported,
}

pub(super) fn standing(keyword: &str) -> Standing {
    if has(UNSUPPORTED, keyword) {
        return Standing::Unsupported;
    }
    if keyword.starts_with("x-") {
        return Standing::Known(Form::Any);
    }
    let known = KNOWN.iter().find(|(_, keywords)| has(keywords, keyword));
    known.map_or(Standing::Unknown, |(form, _)| Standing::Known(*form))
}

impl Form {
    /// Whether the value has this form.
    pub(super) fn holds(self, value: &Value) -> bool {
        match self {
            Form::Any => true,
            Form::Schemas => value.as_array().is_some_and(|schemas| !schemas.is_empty()),
            Form::NamedSchemas => value.is_object(),
            Form::Types => kinds(value).is_some(),
            Form::Values => value.is_array(),
            Form::Number => value.is_number(),
            Form::Bound => value.is_number() || value.is_boolean(),
            Form::Positive => value.as_f64() > Some(0.0),
            Form::Count => count(value).is_some(),
            Form::Truth => value.is_boolean(),
            Form::Text => value.is_string(),
            Form::Anchor => value.as_str().is_some_and(is_anchor),
            Form::Names => json::texts(value).is_ok(),
            Form::NamesByName => value
                .as_object()
                .is_some_and(|lists| lists.values().all(|list| json::texts(list).is_ok())),
        }
    }

    /// A description of the form, and a hint how to write it.
    pub(super) fn wanted(self) -> (&'static str, &'static str) {
        match self {
            Form::Any => ("a value", "leave the keyword out"),
            Form::Schemas => ("a list of schemas, not empty", "leave it out if there are none"),
            Form::NamedSchemas => ("an object of schemas", "write each schema under its name"),
            Form::Types => (
                "the name of a type, or a list of them",
                "the types are string, number, integer, boolean, object, array and null",
            ),
            Form::Values => ("a list of values", "use const for one value"),
            Form::Number | Form::Bound => ("a number", "write it without quotes"),
            Form::Positive => ("a number greater than 0", "leave it out if any number fits"),
            Form::Count => ("a whole number that is not negative", "write it without quotes"),
            Form::Truth => ("true or false", "write it without quotes"),
            Form::Text => ("a string", "write it in quotes"),
            Form::Anchor => ("a name", "it begins with a letter or _ and has no # and no /"),
            Form::Names => {
                ("a list of property names", "required stands beside properties, not inside them")
            }
            Form::NamesByName => {
                ("lists of property names by name", "write it like {\"card\": [\"address\"]}")
            }
        }
    }
}

/// The kinds that `type` can name.
pub(super) fn kinds(value: &Value) -> Option<Vec<JsonType>> {
    let names = match value {
        Value::Array(names) if !names.is_empty() => names.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut kinds = Vec::new();
    for name in names {
        kinds.push(JsonType::named(name.as_str()?)?);
    }
    Some(kinds)
}

/// A non-negative whole number, such as `2` or `2.0`.
pub(super) fn count(value: &Value) -> Option<u64> {
    let whole = |float: &f64| *float >= 0.0 && float.fract() == 0.0;
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|float| float as u64))
}

pub(super) fn is_anchor(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && !name.contains(['#', '/'])
}

pub(super) fn is_known_draft(uri: &str) -> bool {
    let address = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"));
    let draft = address.and_then(|address| address.strip_prefix("json-schema.org/"));
    draft.is_some_and(|draft| has(DRAFTS, draft.strip_suffix('#').unwrap_or(draft)))
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}
